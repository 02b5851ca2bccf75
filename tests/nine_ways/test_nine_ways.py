"""Nine ways in which published comparisons went wrong, each as a small study, and how it is caught.

What the plan can know is caught before the first run, the rest by the run or by the results. Each test is called by the number that
the way has in the list of why published figures of OELM cannot be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairtune.analysis.results import load_results
from fairtune.analysis.verification import verify_study
from fairtune.core.cautions import Caution
from fairtune.report.writer import make_content, write_report
from fairtune.study.cautions import RefusedPlan
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from tests.report.made_ledger import EXAMPLES, QK, STUDY, ArmSpec, make_study
from tests.report.made_timing import time_ledger
from tests.sealed import close_again

KEEP = {"orthogonal_qk": {"init": "keep"}}
OELM = {"orthogonal_qk": {"init": "headwise"}}
RANDOM = {"orthogonal_qk": {"init": "normal"}}
FAIR: dict[str, Any] = {
    "baseline": {},
    "freeze-pretrained": {"methods": [KEEP]},
    "oelm-freeze": {"methods": [OELM]},
}
GPT: dict[str, Any] = {"model": {"preset": "gpt-mini", "context": 128}, "tokenizer": {"train": 300}}


@pytest.fixture
def source(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    """What all nine should have been: nothing is said against it."""
    train = {"steps": 2, "batch_size": 16, "max_length": 32}
    study = {"study": "fair", "task": tiny_task.as_study(), "model": str(tiny_model), "train": train, "arms": FAIR}
    assert make_plan(load_study(study)).cautions == ()
    return study


def planned(source: dict[str, Any], force: bool = False, **changes: Any) -> Plan:
    return make_plan(load_study({**source, **changes}), force)


def said(cautions: Sequence[Caution], code: str) -> Caution:
    """The one caution of this code."""
    (found,) = [caution for caution in cautions if caution.code == code]
    return found


def test_way_1_the_baseline_was_reinitialised_too(
    source: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its queries and keys were drawn anew, silently: the run fails. Written as methods of the baseline, the plan warns."""
    import torch

    from fairtune.execution import start
    from fairtune.execution.run import perform_run

    load = start.load_classifier

    def load_and_reinitialise(*given: Any) -> Any:
        loaded = load(*given)
        with torch.no_grad():
            for name, parameter in loaded.network.named_parameters():
                if name.endswith(("query.weight", "key.weight")):
                    parameter.normal_(0, 0.02)
        return loaded

    monkeypatch.setattr(start, "load_classifier", load_and_reinitialise)
    plan = planned(source)
    first = next(run for run in plan.runs if run.name == "baseline/seed-0")
    result = perform_run(first.at(tmp_path / "runs"), "cpu", lambda: None, lambda _: None)
    assert result["status"] == "failed"
    assert "this arm has no methods, yet 4 tensors differ from the checkpoint at step 0" in result["reason"]

    told = planned(source, arms={**FAIR, "baseline": {"methods": [RANDOM]}}).cautions
    assert "not the untouched checkpoint" in said(told, "reference-methods").why


def test_way_2_random_was_called_the_control_of_orthogonal(source: dict[str, Any]) -> None:
    """Nothing told freezing from the new weights: the plan warns, and names the arm that is missing."""
    arms = {"baseline": {}, "oelm-freeze": {"methods": [OELM]}, "oelm-random": {"methods": [RANDOM]}}
    caution = said(planned(source, arms=arms).cautions, "no-freezing-control")
    assert caution.grade == "warning"
    assert caution.seen.startswith("oelm-freeze and oelm-random: ")
    assert caution.do == "Add the arm `freeze-pretrained: {methods: [{orthogonal_qk: {init: keep}}]}`"


def test_way_3_the_learning_rate_was_raised_for_one_side(source: dict[str, Any]) -> None:
    """The plan warns that there will be no verdict, names the baseline at that rate, and adds it where asked to."""
    arms = {"baseline": {}, **{arm: {**FAIR[arm], "lr": 1e-4} for arm in ("freeze-pretrained", "oelm-freeze")}}
    caution = said(planned(source, arms=arms).cautions, "no-control")
    assert caution.grade == "warning"
    assert "method and lr cannot be told apart, so no verdict will be given" in caution.why
    assert "`baseline-lr-1e-4: {lr: 1e-4}`" in caution.do
    added = planned(source, arms=arms, controls=True)
    assert added.primaries["oelm-freeze"] == "baseline-lr-1e-4"
    assert "no-control" not in [found.code for found in added.cautions]


def test_way_4_micro_batches_were_timed_against_whole_steps(source: dict[str, Any]) -> None:
    """The plan warns that a step is not the same work in both."""
    arms = {**FAIR, "oelm-freeze": {"batch_size": 8, "accumulate": 2, "methods": [OELM]}}
    caution = said(planned(source, arms=arms).cautions, "unequal-steps")
    assert caution.grade == "warning"
    assert caution.seen == "oelm-freeze: batch_size is 8, baseline has 16; accumulate is 2, baseline has 1"


def test_way_4_a_speed_up_beyond_what_the_products_allow(tmp_path: Path) -> None:
    """The report flags the ratio of 0.43 ("57 % faster") and does not celebrate it."""
    right = [330, 332, 334]
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec(right), "oelm": ArmSpec(right, methods=QK)}, margin=0.05)
    time_ledger(made, {"baseline": 0.162, "oelm": 0.069}, frozen=("oelm",))
    content = make_content(made.results())
    (note,) = [note for note in content.sections["costs"].notes if note.startswith("Implausible")]
    assert "oelm takes 0.42" in note
    found = next(row.versus for row in content.rows if row.arm == "oelm")
    assert found is not None
    assert found.time_change is None, "no answer builds on it"


def test_way_4_arms_were_timed_at_different_times(tmp_path: Path) -> None:
    """What runs took, each at its own time, is never a ratio: 2.18 s beside 0.288 s says nothing."""
    right = [330, 332, 334]
    arms = {"baseline": ArmSpec(right, step_seconds=2.18), "oelm": ArmSpec(right, methods=QK, step_seconds=0.288)}
    made = make_study(tmp_path / "runs", arms, margin=0.05)
    content = make_content(made.results())
    found = next(row.versus for row in content.rows if row.arm == "oelm")
    assert found is not None
    assert (found.timed, found.time_change) == (None, None)
    text = (write_report(made.results())["markdown"]).read_text()
    assert "do not compare these times" in text.split("What runs took")[1]
    assert "0.13" not in text.split("## Time and size")[1].split("What runs took")[0], "no ratio is made of them"


def test_way_5_one_arm_always_ran_after_the_other(source: dict[str, Any]) -> None:
    caution = said(planned(source, order="sequential").cautions, "order-sequential")
    assert caution.grade == "warning"
    assert "ran at different times" in caution.why
    assert "crossover" in caution.do


def test_way_6_the_best_evaluation_was_picked_on_the_reported_set(source: dict[str, Any]) -> None:
    """Such a study does not run; forced, it says so for good."""
    task = {**source["task"], "validation": source["task"]["test"]}
    with pytest.raises(RefusedPlan, match="selected on what is then reported"):
        planned(source, task=task)
    forced = planned(source, force=True, task=task)
    assert said(forced.cautions, "splits-overlap").forced
    assert forced.as_json()["cautions"][0]["forced"], "and the ledger keeps it"


def test_way_7_there_was_one_seed(source: dict[str, Any]) -> None:
    caution = said(planned(source, seeds=1).cautions, "few-seeds")
    assert caution.grade == "warning"
    assert "one run gives no verdict at all" in caution.why


def test_way_8_the_stored_figure_does_not_follow_from_the_predictions(tmp_path: Path) -> None:
    """0.9312 is no multiple of 1/400: figures are computed again from predictions, and `fairtune verify` says what is wrong."""
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([330, 332, 334]), "focal": ArmSpec([331, 333, 335])})
    made.results()
    close_again(made.folder("focal", 1), metrics={"test": {"accuracy": 0.9312}})
    assert round(0.9312 * EXAMPLES) / EXAMPLES != 0.9312
    run = next(run for run in load_results(made.runs, STUDY).finished("focal") if run.seed == 1)
    assert run.metrics["accuracy"] == 333 / EXAMPLES
    caution = said(load_results(made.runs, STUDY).cautions, "figures-disagree")
    assert (
        "focal/seed-1: its result says accuracy 0.9312, its predictions 0.8325; and 0.9312 is no multiple"
        in caution.seen
    )
    problems = verify_study(made.runs, STUDY).problems
    assert any("says accuracy is 0.9312 on test, its predictions say 0.8325" in problem for problem in problems)


def test_way_9_a_decoder_classified_without_causal_mask(source: dict[str, Any]) -> None:
    """Causal is the default; what has no mask was asked for by name, and the audit names it."""
    arms = {**FAIR, "unmasked": {"attention": "bidirectional"}}
    made = planned({**source, **GPT}, arms=arms)
    assert [made.as_json()["arms"][arm]["train"]["attention"] for arm in FAIR] == [None] * len(FAIR)
    (difference,) = made.differences
    assert (difference.setting, difference.value) == ("attention", "bidirectional")
