"""Ledgers that somebody made to break or to fool a live view: each is told in a sentence, and leaves the others as they are."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.monitor.dash_server import RunningDash, running_dash
from tests.report.made_ledger import STUDY, ArmSpec, make_study, usual_ledger

from fairtune.core.files import read_sealed, write_sealed
from fairtune.monitor.dash.feed import Feed, Parts
from fairtune.monitor.study_builder import StudyBuilder

SECRET = "what nobody outside may read"
HOSTILE = "<img src=x onerror=alert(1)>"
PLANS: dict[str, Callable[[dict[str, Any]], None]] = {
    "arm-up": lambda plan: plan["runs"][0].update(arm="../../outside"),
    "arm-name": lambda plan: plan["arms"].update({"..": {}}),
    "arm-list": lambda plan: plan["runs"][0].update(arm=[]),
    "arms-wrong": lambda plan: plan["arms"].update(baseline=5),
    "run-none": lambda plan: plan["runs"].insert(0, None),
    "seed-negative": lambda plan: plan["runs"][0].update(seed=-1),
    "task-text": lambda plan: plan.update(task="t"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole study, many whose plans were written by hand, and one with pipes, links and numbers that do not fit."""
    found = tmp_path_factory.mktemp("hostile") / "runs"
    usual_ledger(found).results()
    for name, change in PLANS.items():
        shutil.copytree(found / STUDY, found / name)
        plan = read_sealed(found / name / "study.json")
        change(plan)
        write_sealed(found / name / "study.json", plan)
    outside = found.parent / "outside" / "seed-0"
    outside.mkdir(parents=True)
    (outside / "environment.json").write_text(json.dumps({"secret": SECRET}))
    shutil.copytree(found / STUDY, found / "files")
    (found.parent / "secret.log").write_text(SECRET)
    home = found / "files"
    (home / "logs").mkdir()
    (home / "logs" / "worker-out.log").symlink_to(found.parent / "secret.log")
    (home / "logs" / "worker-w.json").write_text(json.dumps({"worker": "w", "device": HOSTILE}))
    (home / "logs" / "worker-x.json").write_text(json.dumps({"worker": "x"}))
    (home / "report").symlink_to("/")
    for pipe in (home / "baseline" / "seed-0" / "result.json", home / "baseline" / "seed-1" / "events.jsonl"):
        pipe.unlink()
        os.mkfifo(pipe)
    failed = read_sealed(home / "focal" / "seed-1" / "result.json")
    write_sealed(home / "focal" / "seed-1" / "result.json", {**failed, "reason": f"\ud800{HOSTILE}"})
    return found


@pytest.fixture(scope="module")
def dash(runs: Path) -> Iterator[RunningDash]:
    with running_dash(runs) as found:
        yield found


def test_plans_made_by_hand_are_told_and_leave_other_studies_alone(dash: RunningDash) -> None:
    listed = {row["study"]: row for row in json.loads(dash.get("/studies.json").body)["studies"]}
    assert listed[STUDY]["state"] == "stopped"
    for name in PLANS:
        assert listed[name]["state"] == "unreadable", name
        assert "is not a plan of this version" in listed[name]["problem"]
        assert dash.get(f"/study/{name}", accept="text/html").status == 200
        assert json.loads(dash.get(f"/study/{name}/view.json").body)["view"]["state"] == "unreadable"
    for path in ("run/..%2F..%2Foutside/0.json", "run/../../outside/0.json"):
        answer = dash.get(f"/study/arm-up/{path}")
        assert answer.status in (400, 404)
        assert SECRET not in answer.body


def test_pipes_links_and_numbers_stop_nobody_and_show_nothing_from_outside(dash: RunningDash) -> None:
    answer = dash.get("/study/files/view.json")
    assert answer.status == 200
    found = json.loads(answer.body)
    assert SECRET not in answer.body, "a log that is a link is not read"
    assert found["reports"] == [], "a report's folder that is a link is not searched"
    assert dash.get("/study/files/log/out.json").status == 404
    (device,) = found["view"]["devices"]
    assert device["device"] == HOSTILE, "what is no sign is left out"
    runs = {(run["arm"], run["seed"]): run for run in found["view"]["runs"]}
    assert runs["baseline", 0]["state"] == "damaged"
    assert HOSTILE in runs["focal", 1]["reason"]
    assert dash.get("/study/files/run/baseline/1.json").status == 200
    assert "<img" not in dash.get("/study/files", accept="text/html").body


class _Told(Feed):
    """A feed of which the test says what it sees."""

    seen: Parts = {}  # noqa: RUF012 - the test's own

    def _look(self, _: str) -> Parts:
        return dict(self.seen)


def test_a_page_that_opens_takes_no_news_from_another(tmp_path: Path) -> None:
    async def watch() -> None:
        feed = _Told(StudyBuilder(tmp_path, judged="never"))
        feed.seen = {"state": '"running"'}
        first = feed.listen("a")
        assert "running" in await anext(first)
        feed.seen = {"state": '"finished"'}
        second = feed.listen("a")
        assert "finished" in await anext(second)
        assert "finished" in await asyncio.wait_for(anext(first), 5)
        await first.aclose()  # type: ignore[attr-defined]
        await second.aclose()  # type: ignore[attr-defined]

    asyncio.run(watch())


def test_a_study_that_cannot_be_shown_does_not_end_the_news_of_others(tmp_path: Path) -> None:
    feed = Feed(StudyBuilder(tmp_path, judged="never"))
    feed._answer = lambda _: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    assert "ZeroDivisionError" in feed._look("a")["problem"]


def test_runs_done_again_are_judged_again_and_old_words_are_not_the_last(tmp_path: Path) -> None:
    """Deleted and run again while nobody looked, with the same arms and seeds."""
    runs = tmp_path / "runs"
    arms = {"baseline": [336, 338, 334], "other": [256, 262, 251]}
    make_study(runs, {arm: ArmSpec(right) for arm, right in arms.items()}).results()
    builder = StudyBuilder(runs)
    assert builder.judge is not None
    builder.tick()
    builder.view(STUDY)
    assert builder.judge.wait(60)
    before = builder.view(STUDY)
    assert before.arms[1].word == "worse"
    shutil.rmtree(runs / STUDY)
    make_study(runs, {arm: ArmSpec(right) for arm, right in zip(arms, reversed(arms.values()), strict=True)}).results()
    builder.tick()
    now = builder.view(STUDY)
    assert (now.verdict.opening, now.arms[1].word) == ("", None)
    assert now.verdict.note == "All runs have ended; the verdict is being worked out."
    assert builder.judge.wait(60)
    assert builder.view(STUDY).arms[1].word == "better"
