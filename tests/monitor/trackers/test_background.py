"""Trackers of a study that runs: what goes wrong with them is told, and hurts nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_ledger import STUDY, usual_ledger

from fairtune.cli.track import read_trackers, track
from fairtune.core.errors import FairtuneError
from fairtune.ledger.events import EventLog
from fairtune.monitor.trackers import background
from fairtune.monitor.trackers.background import BackgroundSync, problem_text, track_study
from fairtune.monitor.trackers.curve_points import MOST, CurveReader
from fairtune.monitor.trackers.rows import TrackedPoint, TrackedRow, TrackedStudy
from fairtune.settings.track import Track


class MemoryTracker:
    """Keeps rows in memory; fails as often as it is told to."""

    name, place, live = "tensorboard", "memory", True

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.points, self.closed = failures, {}, False  # type: ignore[var-annotated]
        self.rows: dict[str, TrackedRow] = {}

    def begin(self, study: TrackedStudy) -> None:
        assert study.study == STUDY

    def marks(self) -> Mapping[str, str]:
        return {}

    def sent(self, row: TrackedRow) -> Mapping[str, int]:
        return {"*": max((point.step for point in self.points.get(row.name, ())), default=-1)}

    def send(self, row: TrackedRow, points: Sequence[TrackedPoint], mark: str) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError(f"the server said \x1b[31mno\x1b[0m\nand {mark}")
        self.rows[row.name] = row
        self.points.setdefault(row.name, []).extend(points)

    def send_study(self, study: TrackedStudy) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return usual_ledger(tmp_path_factory.mktemp("made") / "runs").runs


def use(monkeypatch: pytest.MonkeyPatch, tracker: MemoryTracker) -> Track:
    monkeypatch.setattr(background, "make_tracker", lambda *_: tracker)
    monkeypatch.setattr(background, "missing_packages", lambda _: {})
    return Track.model_validate({"tensorboard": {}})


def test_the_rest_is_sent_when_the_study_ends(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    tracker = MemoryTracker()
    with track_study(use(monkeypatch, tracker), runs, STUDY, told.append):
        pass
    assert len(tracker.rows) == 17
    assert [point.step for point in tracker.points["baseline/seed-0"]] == list(range(1, 21))
    assert tracker.closed
    assert told == []


def test_the_rest_is_sent_when_the_study_is_stopped_too(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = MemoryTracker()
    with pytest.raises(KeyboardInterrupt), track_study(use(monkeypatch, tracker), runs, STUDY, print):
        raise KeyboardInterrupt
    assert len(tracker.rows) == 17


def test_a_tracker_that_fails_is_told_and_the_way_out_is_told_at_the_end(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with track_study(use(monkeypatch, MemoryTracker(failures=99)), runs, STUDY, told.append):
        pass
    first, last = told
    assert first.startswith("fairtune: tensorboard: ConnectionError: the server said ")
    assert first.endswith(". The study goes on without it.")
    assert "\x1b" not in first
    assert last.endswith(f"send it with: fairtune track {STUDY} --to tensorboard --runs {runs}")


def test_a_password_in_an_address_is_told_to_nobody(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    uri = "https://me:secret@server.example"
    problem = {"mlflow": problem_text(ConnectionError(f"{uri}/api is away"))}
    monkeypatch.setattr(background, "missing_packages", lambda _: problem)
    with track_study(Track.model_validate({"mlflow": {"uri": uri, "project": "a b"}}), runs, STUDY, told.append):
        pass
    assert "secret" not in str(told)
    assert f"--to mlflow --uri https://me:...@server.example --project 'a b' --runs {runs}" in told[-1]


def test_a_tracker_that_recovers_has_everything_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(background, "SHARE", 1.0)  # whatever the first attempt cost
    tracker = MemoryTracker(failures=1)
    sync = BackgroundSync(use(monkeypatch, tracker), runs, STUDY, told.append, every=0.001)
    while not tracker.rows:
        sync._closing.wait(0.001)
    sync.close()
    assert len(told) == 1, "it was told when it failed; at the end there was nothing to tell"
    assert [point.step for point in tracker.points["baseline/seed-0"]] == list(range(1, 21))


def test_a_package_that_is_missing_is_told_before_the_first_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(background, "missing_packages", lambda names: {n: f"{n} is not installed: pip" for n in names})
    with track_study(Track.model_validate({"wandb": {}}), runs, STUDY, told.append):
        assert told == ["fairtune: wandb: wandb is not installed: pip. The study goes on without it."]
    assert len(told) == 2


def test_a_study_without_trackers_starts_nothing(tmp_path: Path) -> None:
    with track_study(None, tmp_path, STUDY, print), track_study(Track(), tmp_path, STUDY, print):
        pass


def write(path: Path, events: Sequence[dict[str, Any]]) -> None:
    log = EventLog(path)
    for event in events:
        log.write(**event)
    log.close()


def step(number: int, loss: float = 0.5) -> dict[str, Any]:
    return {"event": "step", "unit": number, "step": number, "loss": loss, "lr": 0.1}


def test_a_point_waits_until_the_run_is_past_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    reader = CurveReader(path, 10)
    write(path, [step(1), step(2)])
    assert [point.step for point in reader.read(ended=False)] == [1]
    write(path, [{"event": "evaluation", "unit": 3, "split": "validation", "step": 2, "accuracy": 0.9}])
    assert reader.read(ended=False) == []
    (last,) = reader.read(ended=True)
    assert last.values == {"train/loss": 0.5, "train/lr": 0.1, "validation/accuracy": 0.9}


def test_what_was_lost_is_not_given_and_what_is_done_again_not_twice(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, [step(1), step(2), step(3, 0.1), {"event": "resumed", "unit": 3, "step": 2}, step(3, 0.2), step(4)])
    reader = CurveReader(path, 10)
    assert [(point.step, point.values["train/loss"]) for point in reader.read(ended=False)] == [
        (1, 0.5),
        (2, 0.5),
        (3, 0.2),
    ]
    write(path, [{"event": "resumed", "unit": 2, "step": 1}, step(2), step(3), step(4), step(5)])
    assert [point.step for point in reader.read(ended=True)] == [4, 5]


def test_a_long_run_is_thinned_to_means(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, [step(number, float(number)) for number in range(1, 8)])
    reader = CurveReader(path, 3 * MOST)
    found = [(point.step, point.values["train/loss"]) for point in reader.read(ended=True)]
    assert found == [(3, 2.0), (6, 5.0), (7, 7.0)]


def test_names_and_options_that_nobody_has_are_refused() -> None:
    with pytest.raises(FairtuneError, match=r"no tracker 'tensorbord'; there are: .* Did you mean 'tensorboard'\?"):
        read_trackers("tensorbord,mlflow", {})
    with pytest.raises(FairtuneError, match="--uri is not an option of tensorboard; leave it out"):
        read_trackers("tensorboard", {"uri": "x", "folder": "y"})
    found = read_trackers("wandb, mlflow", {"project": "p", "offline": True, "uri": None})
    assert found.model_dump(exclude_none=True) == {
        "mlflow": {"project": "p"}, "wandb": {"project": "p", "offline": True}
    }  # fmt: skip


def test_the_verb_says_what_it_sent_and_where(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tensorboard")
    for expected in ("5 arms, 12 runs, 220 points", "nothing new"):
        track(STUDY, "tensorboard", runs=runs, folder=str(tmp_path / "tb"))
        said = capsys.readouterr().out
        assert said.startswith(f"tensorboard: {expected} -> {tmp_path / 'tb' / STUDY}")
