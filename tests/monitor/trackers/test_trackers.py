"""Trackers: what their own readers find is what the ledger says, and what is sent twice is there once."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_ledger import STUDY, MadeLedger, usual_ledger
from tests.sealed import close_all

from fairtune.core.files import write_json
from fairtune.ledger.events import EventLog
from fairtune.monitor.trackers.base import MarkFile, make_tracker
from fairtune.monitor.trackers.rows import TrackedPoint, TrackedRow, TrackedStudy
from fairtune.monitor.trackers.sync import StudySource, SyncCount, TrackerSync
from fairtune.settings.track import Track

ARMS = ("baseline", "baseline-fast", "oelm-freeze", "focal", "later")
REASON = "the loss is nan at step 3 of 20"
KINDS = ("tensorboard", "mlflow", "wandb")


@dataclass
class Found:
    """A row as a tracker's own reader finds it.

    Args:
        curves: by name, the points in the order in which they are there.
        texts: all that is said of it besides.
    """

    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    texts: str = ""
    parent: str | None = None
    times: list[float] = field(default_factory=list)


@dataclass
class Place:
    """A made ledger, and a tracker to send it to."""

    kind: str
    root: Path

    @property
    def made(self) -> MadeLedger:
        return MadeLedger(self.root / "runs", {})

    def sync(self, study: str = STUDY) -> SyncCount:
        """As `fairtune track` does, by a tracker that knows nothing but what is there."""
        source = StudySource(self.root / "runs", study)
        tracker = make_tracker(self.kind, self.settings(), study)
        try:
            return TrackerSync(source, tracker).sync(source.read())
        finally:
            if self.kind != "wandb":  # whose service is started once for all tests
                tracker.close()

    def settings(self) -> Track:
        own: dict[str, Any] = {
            "tensorboard": {"folder": str(self.root / "tb")},
            "mlflow": {"uri": (self.root / "mlruns").as_uri()},
            "wandb": {"folder": str(self.root), "offline": True},
        }[self.kind]
        return Track.model_validate({self.kind: own})

    def read(self) -> dict[str, Found]:
        return {"tensorboard": _tensorboard, "mlflow": _mlflow, "wandb": _wandb}[self.kind](self.root)

    def forget(self, names: Sequence[str]) -> None:
        """As if a sync had been killed after it sent some rows, before it kept their marks; a file with half a record."""
        if self.kind == "mlflow":
            for run in self._mlflow_runs(names):
                (self.root / "mlruns" / run.info.experiment_id / run.info.run_id / "tags" / "fairtune.mark").unlink()
            return
        pattern = f"tb/{STUDY}/fairtune-marks.json" if self.kind == "tensorboard" else "wandb/fairtune-*.json"
        marks = MarkFile(next(self.root.glob(pattern)))
        for name in names:
            marks.drop(name)
        marks.save(**{name: value for name, value in marks.content.items() if name != "rows"})
        if self.kind == "tensorboard":
            with next((self.root / "tb" / STUDY / names[0]).glob("events*")).open("ab") as file:
                file.write(struct.pack("<Q", 500) + b"torn")

    def delete(self, names: Sequence[str]) -> None:
        """Delete some rows there, as a user would."""
        if self.kind == "mlflow":
            for run in self._mlflow_runs(names):
                _mlflow_client(self.root).delete_run(run.info.run_id)
        elif self.kind == "tensorboard":
            for name in names:
                next((self.root / "tb" / STUDY / name).glob("events*")).unlink()
        else:
            rows = MarkFile(next(self.root.glob("wandb/fairtune-*.json"))).rows
            for name in names:
                shutil.rmtree(self.root / "wandb" / rows[name]["folder"])

    def _mlflow_runs(self, names: Sequence[str]) -> list[Any]:
        return [run for run in _mlflow_all(self.root) if run.info.run_name in names]


def _tensorboard(root: Path) -> dict[str, Found]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: dict[str, Found] = {}
    home = root / "tb" / STUDY
    for folder in sorted({path.parent for path in home.rglob("events.out.tfevents*")} - {home}):
        events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        row = found[folder.relative_to(home).as_posix()] = Found()
        for tag in events.Tags()["scalars"]:
            row.curves[tag] = [(one.step, one.value) for one in events.Scalars(tag)]
            row.times += [one.wall_time for one in events.Scalars(tag)]
            row.figures[tag] = row.curves[tag][-1][1]
        for tag in events.Tags()["tensors"]:
            row.texts += str([one.tensor_proto.string_val for one in events.Tensors(tag)])
        row.parent = folder.parent.name if folder.parent != home else None
    return found


def _mlflow_client(root: Path) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=(root / "mlruns").as_uri())


def _mlflow_all(root: Path) -> list[Any]:
    client = _mlflow_client(root)
    return list(client.search_runs([client.get_experiment_by_name(STUDY).experiment_id], max_results=1000))


def _mlflow(root: Path) -> dict[str, Found]:
    client, runs = _mlflow_client(root), _mlflow_all(root)
    names = {run.info.run_id: run.info.run_name for run in runs}
    found = {}
    for run in runs:
        row = Found(figures=dict(run.data.metrics), texts=json.dumps([run.data.tags, run.data.params, run.info.status]))
        row.parent = names.get(run.data.tags.get("mlflow.parentRunId"))
        for name in run.data.metrics:
            history = client.get_metric_history(run.info.run_id, name)
            row.curves[name] = [(one.step, one.value) for one in history]
            row.times += [one.timestamp / 1000 for one in history]
        assert run.info.run_name not in found, "one row for each"
        found[run.info.run_name] = row
    return found


def _wandb(root: Path) -> dict[str, Found]:
    found = {}
    for path in sorted((root / "wandb").glob("offline-run-*/*.wandb")):
        row, name = Found(), ""
        for record in _wandb_records(path):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                name, row.texts = record.run.display_name, row.texts + record.run.notes
                row.parent = record.run.run_group if record.run.job_type == "run" else None
            elif kind == "config":
                row.texts += "".join(f"{one.key} {one.value_json}\n" for one in record.config.update)
            elif kind == "history":
                items = {(one.key or one.nested_key[0]): json.loads(one.value_json) for one in record.history.item}
                row.times.append(items["_timestamp"])
                for item, value in items.items():
                    if "/" in item:
                        row.curves.setdefault(item, []).append((items["_step"], value))
            elif kind == "summary":
                for one in record.summary.update:
                    value = json.loads(one.value_json)
                    if isinstance(value, int | float):
                        row.figures[one.key or one.nested_key[0]] = value
                    row.texts += f"{value}\n"
        assert name not in found, "one folder for each"
        found[name] = row
    return found


def _wandb_records(path: Path) -> Iterator[Any]:
    """W&B's own records; their frames are those of LevelDB's log, in blocks of 32 KiB after a head of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, part = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        _, size, kind = struct.unpack_from("<IHB", data, at)
        if left < 7 or kind == 0:
            at += left
            continue
        part, at = part + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):
            record, part = Record.FromString(part), b""
            yield record


@pytest.fixture(scope="module", autouse=True)
def _no_network() -> Iterator[None]:
    quiet = {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false", "MLFLOW_ALLOW_FILE_STORE": "true"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**quiet, "MLFLOW_DISABLE_TELEMETRY": "true"}.items():
            patch.setenv(name, value)
        yield
        if "wandb" in sys.modules:
            sys.modules["wandb"].teardown()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return usual_ledger(tmp_path_factory.mktemp("made") / "runs").runs


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, ledger: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A tracker that was sent the usual ledger."""
    pytest.importorskip(request.param)
    root = tmp_path_factory.mktemp(request.param)
    shutil.copytree(ledger, root / "runs")
    found = Place(request.param, root)
    first = found.sync()
    assert (first.arms, first.runs, first.points) == (5, 12, 220)
    return found


def near(found: Mapping[str, float], name: str, value: float) -> bool:
    return found[name] == pytest.approx(value, rel=1e-6)  # TensorBoard keeps 32 bits


def test_every_run_is_below_its_arm_with_all_its_points(place: Place) -> None:
    found = place.read()
    assert {row.parent for row in found.values()} == {None, *ARMS[:4]}
    assert {name for name, row in found.items() if row.parent is None} == set(ARMS)
    runs = [name for name, row in found.items() if row.parent is not None]
    assert len(runs) == 12
    for name in runs:
        if name == "focal/seed-1":
            continue
        row, seed = found[name], int(name[-1])
        losses = [(step, pytest.approx(0.7 - 0.02 * step + 0.01 * seed, rel=1e-6)) for step in range(1, 21)]
        assert row.curves["train/loss"] == losses
        assert [step for step, _ in row.curves["validation/accuracy"]] == [5, 10, 15, 20]
        written = place.made.folder(*_split(name)).events.stat().st_mtime
        assert all(abs(time - written) < 60 for time in row.times), "the times of the events, not of the sync"
    assert near(found["baseline/seed-1"].figures, "test/accuracy", 338 / 400)


def _split(name: str) -> tuple[str, int]:
    arm, _, seed = name.partition("/seed-")
    return arm, int(seed)


def test_arms_have_n_mean_interval_and_a_verdict_that_is_marked(place: Place) -> None:
    found, results = place.read(), MadeLedger(place.root / "runs", {}).results()
    for arm in ARMS:
        row, summary = found[arm], results.summary(arm)
        assert near(row.figures, "n", summary.n)
        for name in ("mean", "low", "high"):
            value = getattr(summary, name) if summary.n else None
            assert near(row.figures, name, value) if value is not None else name not in row.figures, (arm, name)
    compared = {one.arm: one for one in results.comparisons}
    fast = found["oelm-freeze"]
    assert near(fast.figures, "difference", compared["oelm-freeze"].difference)
    assert near(fast.figures, "difference_low", compared["oelm-freeze"].family[0])
    assert compared["oelm-freeze"].verdict.word in fast.texts
    assert "peeking: 0 of 3 seeds" in fast.texts.replace("\\\\", "")


def test_a_run_that_failed_is_there_with_its_reason(place: Place) -> None:
    failed = place.read()["focal/seed-1"]
    assert REASON in failed.texts
    assert not failed.curves.get("train/loss")


def test_settings_and_signature_are_there(place: Place) -> None:
    texts = place.read()["oelm-freeze/seed-0"].texts
    assert "fairtune:0.1.0|protocol:1|arm:oelm-freeze" in texts.replace("\\", "")
    if place.kind != "tensorboard":  # which has them in its table of settings
        assert "headwise" in texts
        assert "0.0001" in texts


def test_sent_twice_is_there_once(place: Place) -> None:
    before = place.read()
    assert str(place.sync()) == "nothing new"
    assert place.read() == before


@pytest.mark.parametrize("how", ["forget", "delete"])
def test_what_was_killed_is_not_doubled_and_what_was_deleted_comes_again(place: Place, how: str) -> None:
    before, some = place.read(), ("baseline/seed-0", "focal", "focal/seed-1")
    getattr(place, how)(some)
    count = place.sync()
    assert (count.arms, count.runs) == (1, 2)
    after = place.read()
    assert {name: row.curves for name, row in after.items()} == {name: row.curves for name, row in before.items()}
    assert {name: row.parent for name, row in after.items()} == {name: row.parent for name, row in before.items()}
    assert str(place.sync()) == "nothing new"


def test_a_study_that_grew_sends_the_new_alone(place: Place) -> None:
    before = place.read()
    folder = place.made.folder("later", 0)
    donor = place.made.folder("baseline", 0)
    shutil.copytree(donor.path, folder.path)
    planned = {"arm": "later", "seed": 0, "key": "later-0", "plan": "0123456789abcdef", "study": STUDY, "steps": 20}
    folder.write_plan(planned)
    for gone in (folder.manifest, folder.result, folder.path / ".checked.json"):
        gone.unlink(missing_ok=True)
    assert place.sync().runs == 1
    log = EventLog(folder.events)  # it went on from step 15 and was killed again, then ended
    log.write("resumed", 16, step=15)
    for step in range(16, 23):
        log.write("step", step, step=step, loss=0.9)
    log.close()
    result = json.loads(donor.result.read_text()) | {"signature": "later"}
    result.pop("seal"), result.pop("key")
    write_json(folder.result, result)
    close_all(place.root / "runs" / STUDY)
    count = place.sync()
    assert count.runs == 1
    after = place.read()
    steps = [step for step, _ in after["later/seed-0"].curves["train/loss"]]
    assert steps == list(range(1, 23)), "each step once, though some were done twice"
    assert near(after["later"].figures, "n", 1)
    assert {n: row for n, row in after.items() if "/" in n and n in before} == {
        n: row for n, row in before.items() if "/" in n
    }, "runs that were there are as they were"
    assert str(place.sync()) == "nothing new"


def test_hostile_names_stay_names(place: Place, tmp_path: Path) -> None:
    elsewhere = Place(place.kind, tmp_path / "inside" / "root")
    study = "../../<img src=x onerror=alert(1)>"
    tracker = make_tracker(place.kind, elsewhere.settings(), study)
    tracker.begin(TrackedStudy(study, "0123456789ab", "plan", ("<script>alert(1)</script>", "a" * 100_000)))
    arm = "../../../" + "\u0645\U0001f600<b>" * 100
    tags = {"fairtune.arm": arm, "verdict": "<b>" + "x" * 10_000}
    row = TrackedRow(arm, arm, None, arm, "finished", {"arm": arm}, tags, {"n": 1.0}, 1, 1.0, 2.0)
    tracker.send(row, [TrackedPoint(1, 1.0, {"n": 1.0})], "mark")
    params = {"train.../../x": "y" * 10_000, "train.": 1, "train" + "a" * 300: True, **{f"p{i}": i for i in range(150)}}
    names = ("../../etc", "/", "", "a/../b<img>", "m" * 300, ".", " ")
    curves = {f"validation/{name}": float(number) for number, name in enumerate(names)}
    own = TrackedRow(
        f"{arm}/seed-0",
        arm,
        0,
        "../key",
        "failed",
        params,
        {"fairtune.run": "r", "reason": "<img>"},
        {"test/..": 1.0},
        1,
    )
    points = [TrackedPoint(step, 1.0, curves) for step in range(1, 301)]
    tracker.send(own, points, "mark")
    tracker.send_study(TrackedStudy(study, "0123456789ab", "plan", ("<script>alert(1)</script>", "a" * 100_000)))
    tracker.flush()
    assert [path.name for path in tmp_path.iterdir()] == ["inside"], "nothing is written outside"
    assert [path.name for path in (tmp_path / "inside").iterdir()] == ["root"]


def test_trackio_has_every_row_once(ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    storage = pytest.importorskip("trackio.sqlite_storage").SQLiteStorage
    for expected in (12, 0, 12):
        source = StudySource(ledger, STUDY)
        tracker = make_tracker("trackio", Track.model_validate({"trackio": {}}), STUDY)
        assert TrackerSync(source, tracker).sync(source.read()).runs == expected
        tracker.close()
        if not expected:
            next((tmp_path / "trackio").glob("fairtune-*.json")).unlink()
    assert len(storage.get_runs(STUDY)) == 17
    losses = [
        (log["step"], log["train/loss"]) for log in storage.get_logs(STUDY, "baseline/seed-0") if "train/loss" in log
    ]
    assert losses == [(step, pytest.approx(0.7 - 0.02 * step)) for step in range(1, 21)]
    (arm,) = storage.get_logs(STUDY, "focal")
    assert arm["n"] == 2
    failed = storage.get_run_config(STUDY, "focal/seed-1")
    assert (failed["reason"], failed["_Group"]) == (REASON, "focal")
