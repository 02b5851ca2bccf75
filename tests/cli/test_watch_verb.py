"""`fairtune watch` and `fairtune status` on real folders: what they choose, what they say of bad ones, and how they end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.hostile import raw_codes
from tests.report.made_ledger import STUDY, ArmSpec, make_study, usual_ledger
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.cli.run import watch_hint
from fairtune.monitor import watch_loop
from fairtune.monitor.watched_study import WatchedStudy


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of which runs are to come and nobody works on them."""
    return usual_ledger(tmp_path_factory.mktemp("unfinished") / "runs").runs


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    arms = {"baseline": ArmSpec([336, 338]), "focal": ArmSpec([343, 345], methods=[{"focal": {"gamma": 2.0}}])}
    return make_study(tmp_path_factory.mktemp("ended") / "runs", arms).runs


@pytest.fixture
def copied(unfinished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unfinished, tmp_path / "runs"))


def test_one_look_shows_the_study_that_there_is(unfinished: Path) -> None:
    done = call("watch", "--once", "--runs", unfinished)
    assert done.exit_code == 0, done.output
    for words in (
        "made: stopped",
        "12 of 15 ended: 11 finished, 1 failed, 3 waiting",
        "peeking: 0 of 3 seeds",
        "focal/seed-1",
        "the loss is nan at step 3 of 20",
        "84.00",
        "next of 3 in the queue: later/seed-0",
    ):
        assert words in done.stdout, words
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_json_answers_once_with_all_of_it(unfinished: Path) -> None:
    answer = json.loads(call("watch", STUDY, "--json", "--runs", unfinished).stdout)
    assert (answer["study"], answer["state"], answer["total"]) == (STUDY, "stopped", 15)
    assert answer["arms"][0]["arm"] == "baseline"
    assert answer["arms"][0]["mean"] == pytest.approx(0.84)
    assert answer["verdict"]["peeking"] == "peeking: 0 of 3 seeds"


def test_a_study_that_has_ended_is_shown_and_left(ended: Path) -> None:
    done = call("watch", "--runs", ended)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("made: every run has ended")


def test_several_studies_are_listed(copied: Path, ended: Path) -> None:
    shutil.copytree(ended / STUDY, copied / "other")
    (copied / "torn").mkdir()
    (copied / "torn" / "study.json").write_text('{"half": ')
    done = call("watch", "--once", "--runs", copied)
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    assert rows == {"study": "state", "made": "stopped", "other": "finished", "torn": "unreadable"}
    answer = json.loads(call("watch", "--json", "--runs", copied).stdout)
    assert [view["study"] for view in answer["studies"]] == ["made", "other", "torn"]


def test_a_folder_of_a_study_can_be_given(ended: Path) -> None:
    assert call("watch", ended / STUDY, "--once").stdout.startswith("made: every run has ended")


def test_what_cannot_be_watched_is_told_in_a_sentence(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (copied / "torn").mkdir()
    (copied / "torn" / "study.json").write_text('{"half": ')
    cases: list[tuple[list[object], str]] = [
        (["--runs", tmp_path / "none"], "there is no runs folder"),
        (["--runs", tmp_path / "empty"], "no study in the runs folder"),
        (["--runs", tmp_path / "file"], "cannot be read (Not a directory)"),
        (["mad", "--runs", copied], "Did you mean 'made'?"),
        (["torn", "--once", "--runs", copied], "run the study again to rewrite it"),
        (["torn", "--runs", copied], "run the study again to rewrite it"),
        (["--every", "0"], "--every is 0; it must be from 0.2 to 3600 seconds."),
        (["--every", "nan"], "--every is nan"),
        (["\x1b[2J", "--runs", copied], r"no study '\x1b[2J'"),
    ]
    for words, expected in cases:
        done = call("watch", *words)
        assert done.exit_code == 2, done.output
        assert expected in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert raw_codes(done.output) == []


def test_a_study_that_is_deleted_while_it_is_watched(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_loop.time, "sleep", lambda _: shutil.rmtree(copied / STUDY))
    done = call("watch", STUDY, "--runs", copied)
    assert done.exit_code == 2
    assert done.stdout.startswith("made: stopped")
    assert "is no longer in the runs folder" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_that_is_deleted_while_it_is_watched(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_loop.time, "sleep", lambda _: shutil.rmtree(copied))
    done = call("watch", STUDY, "--runs", copied)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_plan_that_is_torn_for_a_moment_ends_nothing(copied: Path) -> None:
    watched = WatchedStudy(copied, STUDY)
    assert watched.look().state == "stopped"
    file = copied / STUDY / "study.json"
    plan = file.read_text()
    file.write_text(plan[:100])
    assert watched.look().state == "unreadable"
    file.write_text(plan)
    assert watched.look().state == "stopped"


@pytest.mark.parametrize("words", [[], ["--once"], ["--json"]])
def test_ctrl_c_leaves_quietly(words: list[str], unfinished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(WatchedStudy, "look", interrupt)
    done = call("watch", *words, "--runs", unfinished)
    assert done.exit_code == 130
    assert done.output == "", "nothing was done that could be gone on with"


def test_status_shows_the_same_facts(unfinished: Path) -> None:
    shown = call("status", STUDY, "--runs", unfinished).stdout
    for words in ("the loss is nan at step 3 of 20", "made: stopped", "peeking: 0 of 3 seeds", "baseline"):
        assert words in shown
    answer = json.loads(call("status", STUDY, "--json", "--runs", unfinished).stdout)
    assert {"study", "runs", "state", "counts", "left", "arms", "devices", "verdict", "log"} <= set(answer)
    known = {"position", "arm", "seed", "status", "metric", "score", "seconds", "reason", "signature"}
    for run in answer["runs"]:
        assert known | {"step", "steps", "loss", "speed", "left", "phase", "worker"} <= set(run)
    assert answer["runs"][0]["step"] == 20


def test_a_run_says_how_to_watch_it() -> None:
    assert watch_hint("s", Path("runs")).endswith("fairtune watch s (in the browser: fairtune dash)")
    assert "fairtune watch s --runs 'my runs'" in watch_hint("s", Path("my runs"))
