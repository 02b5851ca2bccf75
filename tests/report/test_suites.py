"""A suite's answers, on small made ledgers: every word over tasks, what is not counted and why, and the pages."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_ledger import QK, ArmSpec
from made_suites import FOCAL, add_study, baseline, change_study, change_task, gaining, make_suite, move, planned
from made_text_ledger import TextArm, make_text_study
from made_timing import made_session
from tests.hostile import ALL, raw_codes

from fairtune.analysis.arms_over_tasks import ArmOverTasks
from fairtune.analysis.suite_cells import PlannedStudy
from fairtune.analysis.suite_verdict import SuiteVerdict, judge_suite
from fairtune.core.errors import LedgerError
from fairtune.ledger.folders import study_names
from fairtune.ledger.studies import suite_folder
from fairtune.ledger.timings import write_session
from fairtune.report.suite import suite_html, suite_json, suite_markdown, suite_table, write_suite

GOOD, BAD, NIL = (20, 22, 18, 19), (-30, -34, -29, -31), (1, -2, 3, -1)


def judge(runs: Path, studies: list[PlannedStudy]) -> SuiteVerdict:
    return judge_suite("made", studies, runs)


def line_of(found: SuiteVerdict, arm: str = "focal", metric: int = 0) -> ArmOverTasks:
    return next(line for line in found.metrics[metric].all_arms if line.arm == arm)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three studies on which the arm is better, for tests that only read them."""
    runs = tmp_path_factory.mktemp("kept") / "runs"
    make_suite(runs, dict.fromkeys("abc", GOOD))
    return runs


THREE = [planned(f"{task}-study", task) for task in "abc"]


@pytest.fixture
def three(kept: Path, runs: Path) -> Path:
    """The same for tests that change them."""
    shutil.copytree(kept, runs)
    return runs


def test_better_on_all_tasks_is_better(kept: Path) -> None:
    line = line_of(judge(kept, THREE))
    assert line.verdict.word == "better"
    assert (line.better, line.worse, line.open, line.complete) == (3, 0, 0, True)


def test_good_on_one_of_three_is_not_better(runs: Path) -> None:
    line = line_of(judge(runs, make_suite(runs, {"a": (40, 42, 41, 39), "b": NIL, "c": (0, 1, -1, 2)})))
    assert line.verdict.word == "not separable"
    assert "tasks differ" in line.verdict.note
    assert (line.better, line.worse, line.open) == (1, 0, 2)


def test_figures_are_those_of_the_studies(runs: Path) -> None:
    line = line_of(judge(runs, make_suite(runs, {"a": GOOD, "b": NIL, "c": BAD}, margin=0.01)))
    assert line.verdict.word == "mixed"
    assert line.margin == pytest.approx(0.01)
    means = [sum(gains) / 4 / 400 for gains in (GOOD, NIL, BAD)]
    assert [cell.found.difference for cell in line.cells if cell.found] == pytest.approx(means)
    assert line.found.difference == pytest.approx(sum(means) / 3)
    assert line.improvement is not None
    assert line.improvement.mean == pytest.approx((1 + 0.46875 + 0) / 3, abs=0.1)


def test_arms_are_corrected_together_and_simple_baselines_apart(runs: Path) -> None:
    arms = {
        "baseline": baseline(),
        "focal": gaining(*GOOD),
        "fgm": gaining(*NIL, methods=[{"fgm": {}}]),
        "tfidf": ArmSpec([300, 300, 300, 300], learner="tfidf"),
    }
    for task in "abc":
        add_study(runs, task, task, arms)
    kinds = {"focal": False, "fgm": False, "tfidf": True}
    found = judge(runs, [planned(task, task, kinds) for task in "abc"])
    alone = judge(runs, [planned(task, task, ["focal"]) for task in "abc"])
    assert [line.arm for line in found.metrics[0].simple] == ["tfidf"]
    assert line_of(found, "tfidf").verdict.word == "worse"
    p, single = line_of(found).verdict.p, line_of(alone).verdict.p
    assert p == pytest.approx(2 * (single or 0)), "two trained arms, and no simple baseline among them"


def test_cells_that_are_not_there_are_shown_with_the_reason(runs: Path) -> None:
    arms = {"baseline": baseline(), "focal": gaining(*GOOD)}
    for task in ("a", "b", "c"):
        add_study(runs, task, task, arms)
    add_study(runs, "half", "d", {"baseline": baseline(), "focal": ArmSpec([350, 352, None, None], methods=FOCAL)})
    add_study(runs, "lost", "e", {"baseline": baseline(), "focal": ArmSpec(["nan"] * 4, methods=FOCAL)})
    add_study(runs, "other", "f", {"baseline": baseline(), "fgm": gaining(*NIL, methods=[{"fgm": {}}])})
    add_study(runs, "unlike", "g", {"baseline": baseline(), "focal": gaining(*GOOD, lr=1e-4)})
    studies = [planned(name, task) for name, task in (("a", "a"), ("b", "b"), ("c", "c"), ("half", "d"), ("lost", "e"))]
    studies += [
        planned("other", "f", ["fgm"]),
        planned("unlike", "g"),
        planned("gone", "h", trouble="'h': no data here"),
    ]
    found = judge(runs, studies)
    line = line_of(found)
    assert {cell.task: cell.state for cell in line.cells} == {
        "a": "counted", "b": "counted", "c": "counted", "d": "unfinished", "e": "failed", "f": "no such arm",
        "g": "not comparable", "h": "not run",
    }  # fmt: skip
    assert line.verdict.word == "no verdict"
    assert line.verdict.note == "withheld: 5 of 8 tasks are missing, more than a third"
    assert line.found.low is not None, "the mean of what is there is still shown"
    states = {study.study: (study.state, study.reason) for study in found.studies}
    assert states["gone"] == ("not run", "'h': no data here")
    assert states["half"] == ("unfinished", "2 of 8 runs have not ended")
    for text in (suite_markdown(found), suite_html(found)):
        for word in ("unfinished", "failed", "no such arm", "not comparable", "not run", "incomplete"):
            assert word in text


def test_a_verdict_over_an_incomplete_table_says_so(kept: Path) -> None:
    line = line_of(judge(kept, [*THREE, planned("later", "d")]))
    assert line.verdict.word == "better"
    assert line.verdict.note == "over 3 of 4 tasks, without d (not run)"
    assert not line.complete


def test_an_arm_whose_runs_all_failed_on_a_task_is_not_better(three: Path) -> None:
    add_study(three, "lost", "d", {"baseline": baseline(), "focal": ArmSpec(["nan"] * 4, methods=FOCAL)})
    line = line_of(judge(three, [*THREE, planned("lost", "d")]))
    assert line.verdict.word == "not shown"
    assert "all its runs failed on d, minilm" in line.verdict.note


def test_runs_that_failed_count_over_tasks_too(runs: Path) -> None:
    arms = {"baseline": baseline(), "focal": ArmSpec([340, 342, "nan", 341], methods=FOCAL)}
    for task in ("a", "b", "c"):
        add_study(runs, task, task, arms)
    line = line_of(judge(runs, [planned(task, task) for task in ("a", "b", "c")]))
    assert all(cell.counted is not None for cell in line.cells)


def test_models_of_one_task_are_not_two_tasks(runs: Path) -> None:
    arms = {"baseline": baseline(), "focal": gaining(*GOOD)}
    for model in ("minilm", "bert", "gpt"):
        add_study(runs, f"a-{model}", "a", arms, model=model)
    found = judge(runs, [planned(f"a-{model}", "a", model=model) for model in ("minilm", "bert", "gpt")])
    line = line_of(found)
    assert (line.tasks, line.planned, line.verdict.word) == (1, 1, "no verdict")
    assert found.metrics[0].tasks == ("a",)


def test_a_task_without_one_of_its_models_is_counted_and_said(kept: Path) -> None:
    line = line_of(judge(kept, [*THREE, planned("later", "c", model="gpt")]))
    assert (line.tasks, line.planned) == (3, 3)
    assert line.partial == ("c with gpt (not run)",)
    assert "incomplete on c with gpt (not run)" in line.verdict.note


def test_groups_have_means_and_no_verdict(kept: Path) -> None:
    groups = ["encoder", "encoder", "GPT"]
    found = judge(kept, [replace(study, group=group) for study, group in zip(THREE, groups, strict=True)])
    means = {group.group: group for group in line_of(found).groups}
    assert (means["encoder"].tasks, means["GPT"].tasks) == (2, 1)
    assert means["encoder"].low is None, "two tasks have no interval"
    assert "by group, to look at: no verdict" in suite_html(found)


def test_metrics_of_different_scales_are_never_averaged(three: Path) -> None:
    runs, studies = three, THREE
    for place, task in enumerate(("s", "t", "u")):
        losses = {
            "baseline": TextArm([1.5, 1.51, 1.49, 1.5]),
            "focal": TextArm([1.6 + place / 50, 1.62, 1.61, 1.6], methods=QK),
        }
        made = make_text_study(runs.parent / f"{task}-alone", losses)
        move(made, runs, task, task, "gpt-mini", protocol=1)  # type: ignore[arg-type]
    found = judge(runs, [*studies, *(planned(t, t, model="gpt-mini", metric="perplexity", group="GPT") for t in "stu")])
    assert [(one.metric, one.tasks) for one in found.metrics] == [
        ("accuracy", ("a", "b", "c")),
        ("perplexity", ("s", "t", "u")),
    ]
    text = line_of(found, metric=1)
    assert found.metrics[1].unit == "%"
    assert text.verdict.word == "inferior", "a higher perplexity, by more than 5 %"
    assert text.found.difference == pytest.approx(
        sum((0.1 + p / 50 + 0.11 + 0.12 + 0.1) / 4 for p in range(3)) / 3, abs=1e-6
    )
    assert found.metrics[1].text(0.1) == "+10.52", "of logarithms, as percent"
    assert found.metrics[1].gain(0.1) == pytest.approx(9.516, abs=1e-3)
    assert text.improvement is not None
    assert text.improvement.mean == 0.0


def test_studies_of_another_protocol_or_task_are_not_counted(three: Path) -> None:
    change_study(three, "c-study", protocol=0)
    found = judge(three, [THREE[0], planned("b-study", "e"), THREE[2]])
    assert [study.state for study in found.studies] == ["finished", "another plan", "another plan"]
    assert found.studies[1].reason == "on disk it is of the task b, not e"
    assert found.studies[2].reason == "its runs are of protocol 0, others here of 1"
    assert line_of(found).missing == ("e (another plan)", "c (another plan)")


def test_what_a_suite_file_and_a_plan_on_disk_differ_in_is_said(runs: Path) -> None:
    arms = {"baseline": baseline(), "focal": gaining(*GOOD), "fgm": gaining(*NIL, methods=[{"fgm": {}}])}
    add_study(runs, "a", "a", arms)
    (study,) = judge(
        runs,
        [PlannedStudy("a", "a", "minilm", "accuracy", "g", {"baseline": False, "focal": False}, "baseline", 0.95, 5)],
    ).studies
    assert "The plan on disk has 4 seeds, the suite file says 5" in study.remarks
    assert "The plan on disk has arms that the suite file does not: fgm" in study.remarks


def test_an_arm_that_means_other_things_in_other_studies_is_named(runs: Path) -> None:
    add_study(runs, "a", "a", {"baseline": baseline(), "focal": gaining(*GOOD)})
    add_study(runs, "b", "b", {"baseline": baseline(), "focal": gaining(*GOOD, methods=[{"focal": {"gamma": 5.0}}])})
    found = judge(runs, [planned("a", "a"), planned("b", "b")])
    assert any("other methods, or other settings of them, in a and b" in remark for remark in found.remarks)


def test_a_damaged_study_is_named(three: Path) -> None:
    (three / "a-study" / "study.json").write_text("{}")
    found = judge(three, THREE)
    assert found.studies[0].state == "unreadable"
    assert line_of(found).cells[0].state == "unreadable"


def test_nothing_on_disk_is_a_whole_table_of_cells_that_were_not_run(tmp_path: Path) -> None:
    found = judge(tmp_path / "none", [planned(task, task) for task in "abc"])
    assert {cell.state for cell in line_of(found).cells} == {"not run"}
    assert "no verdict over tasks, which takes three or more" in found.opening
    assert suite_html(found)
    assert json.loads(suite_json(found))["metrics"][0]["arms"][0]["difference"] is None


def test_from_five_tasks_on_there_are_profiles(three: Path) -> None:
    for task in "de":
        shutil.copytree(three / "a-study", three / f"{task}-study")
        change_task(three, f"{task}-study", task)
    found = judge(three, [planned(f"{task}-study", task) for task in "abcde"])
    assert line_of(found).profile is not None
    assert "Performance profiles" in suite_html(found)
    assert "interquartile mean" in suite_markdown(found)
    assert "Performance profiles" not in suite_html(judge(three, THREE))


def test_the_page_is_written_beside_the_studies_and_is_no_study(three: Path) -> None:
    runs, found = three, judge(three, THREE)
    (runs / "a-study" / "report").mkdir()
    (runs / "a-study" / "report" / "index.html").write_text("x")
    written = write_suite(found, suite_folder(runs, "made"), runs)
    assert {path.name for path in written.values()} == {"index.html", "suite.md", "suite.json"}
    assert 'href="../../a-study/report/index.html"' in written["html"].read_text()
    assert study_names(runs) == ["a-study", "b-study", "c-study"]
    shutil.rmtree(runs / "suites")
    (runs / "suites").write_text("in the way")
    with pytest.raises(LedgerError, match="cannot be written"):
        write_suite(found, suite_folder(runs, "made"), runs)


def test_names_with_codes_in_them_reach_no_terminal_and_no_page(tmp_path: Path) -> None:
    found = judge(tmp_path, [planned("a", f"task{ALL}", trouble=ALL), planned("b", "b")])
    for text in (suite_html(found), suite_markdown(found), suite_json(found)):
        assert not raw_codes(text)
    assert suite_table(found)


def test_the_mean_of_one_task_has_that_tasks_interval(runs: Path) -> None:
    found = judge(runs, make_suite(runs, {"a": GOOD}))
    (line,) = found.metrics[0].arms
    assert line.worst is not None
    assert line.worst.found is not None
    own = found.metrics[0]
    ends = f"[{own.text(line.worst.found.low)}, {own.text(line.worst.found.high)}]"
    assert f"{own.text(line.found.difference)} {ends}" in suite_markdown(found).replace("\\", "")


def test_times_are_of_all_studies_and_only_timed_arms_have_a_ratio(three: Path) -> None:
    write_session(three / "b-study", made_session({"baseline": 0.5, "focal": 0.55}))
    write_session(three / "c-study", made_session({"baseline": 0.5, "focal": 0.55}, again=1.2))
    found = judge(three, [*THREE, planned("d-study", "d")])
    times = {(own["study"], own["arm"]): own for own in found.times}
    assert list(times) == [(f"{task}-study", arm) for task in "abc" for arm in ("baseline", "focal")]
    assert all((own["n"], own["validation_total"]) == (4, 2.0) for own in times.values())
    ratios = {key: own["ratio"] for key, own in times.items() if own["ratio"] is not None}
    assert ratios == {("b-study", "focal"): pytest.approx(1.1, abs=0.01)}, "not where the A/A failed"
    low, high = times["b-study", "focal"]["ratio_interval"]
    assert low < 1.1 < high
    assert json.loads(suite_json(found))["times"] == list(found.times)
    assert all("ratio of a step" in text for text in (suite_html(found), suite_markdown(found)))
