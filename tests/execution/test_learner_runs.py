"""Runs of simple baselines: recorded, resumed and kept as every run is, the same for every seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.analysis.results import Results, load_results
from fairtune.analysis.verification import verify_study
from fairtune.api import run_study, timed_arms
from fairtune.core.errors import FairtuneError, Stopped
from fairtune.execution.run import perform_run
from fairtune.export import export_model
from fairtune.learners.registry import load_learner
from fairtune.report.sections.catalogue import SECTIONS
from fairtune.report.writer import make_content, write_report
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.testing.toy import TaskFiles
from tests.conftest import performing_here

SIMPLE = ("majority", "tfidf", "naive-bayes", "linear-probe", "knn-probe")


def study_of(model: Path, task: TaskFiles, **more: Any) -> dict[str, Any]:
    return {
        "study": "toy", "task": task.as_study(), "model": str(model), "seeds": [3, 8], "execution": {"devices": "cpu"},
        "train": {"steps": 2, "batch_size": 8, "max_length": 32, "examples": 60},
        "arms": {"baseline": {}, **{name: {} for name in SIMPLE}}, **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def done(tiny_model: Path, tiny_task: TaskFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    runs = tmp_path_factory.mktemp("runs")
    with performing_here():
        yield run_study(study_of(tiny_model, tiny_task), runs, progress=False)


def test_every_run_is_finished_sound_and_scored(done: Results) -> None:
    assert [run.status for run in done.runs] == ["finished"] * 12
    assert verify_study(done.runs_folder, "toy").problems == ()
    for arm in SIMPLE:
        for run in done.finished(arm):
            assert len(run.test.ids) == 60
            assert set(run.result["metrics"]) == {"validation", "test"}
            assert run.result["metrics"]["test"]["loss"] > 0
            assert not {"step_seconds", "parameters", "memory"} & set(run.result), "no figures that nobody measured"
    assert done.summary("tfidf").mean > 0.9
    assert done.summary("majority").mean == 0.5


@pytest.mark.parametrize("arm", SIMPLE)
def test_seeds_are_nothing_to_what_draws_no_random_numbers(done: Results, arm: str) -> None:
    first, second = done.finished(arm)
    assert np.array_equal(first.test.scores, second.test.scores)  # type: ignore[union-attr]
    (finding,) = [finding for finding in done.verdict().findings if finding.arm == arm]
    assert "its runs are the same for every seed" in " ".join(finding.cautions)


def test_a_learner_is_kept_and_scores_again_what_it_scored(done: Results, tiny_task: TaskFiles) -> None:
    for arm in SIMPLE:
        folder = done.finished(arm)[0].folder
        learner, facts = load_learner(folder.model)
        assert facts["labels"] == ["neg", "pos"]
        assert ("encoder" in facts) == (arm in ("linear-probe", "knn-probe"))
        if arm in ("majority", "tfidf", "naive-bayes"):
            texts = [(line.rsplit(",", 1)[0],) for line in tiny_task.test.read_text().splitlines()[1:]]
            assert np.array_equal(learner.scores(texts), done.finished(arm)[0].test.scores)  # type: ignore[union-attr]
        card = json.loads(folder.card.read_text())
        assert card["learner"]["chosen"] == learner.choice.setting
        assert card["learner"]["examples"] == 60


def test_a_run_that_was_killed_is_done_again_to_the_same_bits(
    done: Results, tiny_model: Path, tiny_task: TaskFiles, tmp_path: Path
) -> None:
    plan = make_plan(load_study(study_of(tiny_model, tiny_task)))
    job = next(run for run in plan.runs if run.name == "linear-probe/seed-8").at(tmp_path)
    calls = iter(range(5))

    def stop() -> None:
        if next(calls) == 4:
            raise Stopped

    with pytest.raises(Stopped):
        perform_run(job, "cpu", stop, lambda _: None)
    job.run.model.mkdir()
    (job.run.model / "left-by-the-killed.bin").write_text("x")
    told: list[dict[str, Any]] = []
    assert perform_run(job, "cpu", lambda: None, told.append)["status"] == "finished"
    kept = done.finished("linear-probe")[1].folder
    for name in ("predictions.parquet", "model/learner.safetensors"):
        assert (job.run.path / name).read_bytes() == (kept.path / name).read_bytes()
    assert not (job.run.model / "left-by-the-killed.bin").exists()
    assert not job.run.checkpoint.exists()
    assert [one["phase"] for one in told if one["phase"] != "features"] == ["preparing", "fitting", "score"]


def test_no_model_is_kept_where_none_is_wanted(
    tiny_model: Path, tiny_task: TaskFiles, tmp_path: Path, performed_here: None  # noqa: ARG001
) -> None:  # fmt: skip
    more = {
        "arms": {"tfidf": {}},
        "compare": {"to": "tfidf"},
        "seeds": 1,
        "execution": {"devices": "cpu", "save_model": False},
    }
    results = run_study(study_of(tiny_model, tiny_task, **more), tmp_path, progress=False)
    (run,) = results.finished("tfidf")
    assert not run.folder.model.exists()
    assert make_content(results).rows[0].learner == "tfidf", "a study of one simple baseline has a report"


def test_a_simple_baseline_can_be_exported(done: Results, tmp_path: Path) -> None:
    exported = export_model("toy/tfidf/seed-3", tmp_path / "whole", done.runs_folder)
    loaded: dict[str, Any] = {}
    exec("\n".join(exported.loading), loaded)  # the lines that are shown to the user
    assert loaded["facts"]["learner"] == "tfidf"


def test_every_section_of_the_report_knows_arms_without_steps(done: Results) -> None:
    content = make_content(done)
    for section in SECTIONS:
        found = content.sections[section.name]
        if found is not None:
            list(section.markdown(found, content))
            section.json_keys(found)
    baselines = {one.arm: one for one in content.sections["baselines"]}
    assert list(baselines) == list(SIMPLE)
    assert baselines["majority"].choices == "nothing to choose"
    assert "C " in baselines["linear-probe"].choices
    assert baselines["linear-probe"].features == 32
    assert baselines["tfidf"].seconds is not None
    assert [row.arm for row in content.rows] == ["baseline", *SIMPLE]
    write_report(done)
    assert "Simple baselines" in (done.folder / "report" / "index.html").read_text(encoding="utf-8")
    timing = json.loads((done.folder / "timing.json").read_text())
    own = timing["runs"]["arms"]
    assert [arm for arm, found in own.items() if found["per_step_avg"] is None] == list(SIMPLE), "they have no steps"
    assert all(found["total_seconds"] > 0 for found in own.values())


def test_what_has_no_steps_is_not_timed(tiny_model: Path, tiny_task: TaskFiles) -> None:
    plan = make_plan(load_study(study_of(tiny_model, tiny_task)))
    assert timed_arms(plan, []) == ["baseline"]
    assert timed_arms(plan, ["baseline", "tfidf"]) == ["baseline"]
    with pytest.raises(FairtuneError, match="tfidf: simple baselines are fitted at once, so they have no steps"):
        timed_arms(plan, ["tfidf"])
    other = make_plan(load_study(study_of(tiny_model, tiny_task, compare={"to": "tfidf"})))
    with pytest.raises(FairtuneError, match="tfidf, which the others are compared to, has no steps to be timed"):
        timed_arms(other, [])


def test_an_estimate_leaves_out_what_has_no_steps(tiny_model: Path, tiny_task: TaskFiles) -> None:
    from fairtune.execution.cost_estimate import estimate_costs

    costs = estimate_costs(make_plan(load_study(study_of(tiny_model, tiny_task))))
    assert list(costs.seconds_per_run) == list(costs.seconds_per_step) == ["baseline"]


def test_results_read_back_are_the_same(done: Results) -> None:
    table = load_results(done.runs_folder, "toy").table()
    assert list(table.index) == ["baseline", *SIMPLE]
    assert table.loc[list(SIMPLE), "trainable_share"].isna().all()
