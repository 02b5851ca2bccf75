"""How soon a classifier's validation score reaches a target, and its lowest and last validation loss."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from made_ledger import ArmSpec, make_study

from fairtune.analysis.convergence import Target, reached_by_seed, reached_text, validation_losses
from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.report.writer import write_report


def run_of(seed: int, *evaluations: dict[str, Any], epoch: int | None = None) -> LedgerRun:
    """A run with an evaluation every 10 steps, and an epoch that ended at a step."""
    events = {
        "evaluation": [{"split": "validation", "step": 10 * n, **e} for n, e in enumerate(evaluations, start=1)],
        "epoch": [] if epoch is None else [{"epoch": 1, "step": epoch}],
    }
    return cast(LedgerRun, SimpleNamespace(seed=seed, result={}, events_of=lambda kind: events.get(kind, [])))


@pytest.mark.parametrize(
    ("target", "steps"),
    [
        (Target("accuracy", 0.8), {0: 20, 1: None}),
        (Target("accuracy", 0.6), {0: 10, 1: 10}),
        (Target("log_loss", 0.5), {0: 30, 1: 20}),
        (Target("log_loss", 0.1), {0: None, 1: None}),
    ],
)
def test_the_first_validation_that_reaches_it_counts_in_the_metrics_direction(
    target: Target, steps: dict[int, int | None]
) -> None:
    runs = [
        run_of(0, {"accuracy": 0.6, "log_loss": None}, {"accuracy": 0.8, "log_loss": 0.6}, {"accuracy": 0.7, "log_loss": 0.5}),
        run_of(1, {"accuracy": 0.7, "log_loss": 0.9}, {"accuracy": 0.7, "log_loss": 0.4}, epoch=8),
    ]  # fmt: skip
    found = reached_by_seed(runs, target)
    assert {seed: one and one.step for seed, one in found.items()} == steps
    assert all(one is None or one.epochs == one.step / 8 for one in found.values()), (
        "an arm's epochs are as long as another's"
    )


def test_without_a_whole_epoch_there_are_steps_only() -> None:
    found = reached_by_seed([run_of(0, {"accuracy": 0.9})], Target("accuracy", 0.9))[0]
    assert found is not None
    assert (found.step, found.epochs) == (10, None)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([1200, 1200, 900], "1,200 (3 of 3, 900 to 1,200)"),
        ([1200, None, 900], "1,200 (2 of 3, 900 to 1,200)"),
        ([900, 900], "900 (2 of 2)"),
        ([None, None, 900], "not reached (1 of 3)"),
        ([None, 900], "not reached (1 of 2)"),
        ([None], "not reached (0 of 1)"),
        ([], None),
    ],
)
def test_a_target_that_was_not_reached_is_later_than_any_step(steps: list[int | None], text: str | None) -> None:
    assert reached_text(steps) == text


def test_the_lowest_loss_is_of_any_validation_and_the_last_of_the_last() -> None:
    assert validation_losses(run_of(0, {"loss": 0.6}, {"loss": 0.4}, {"loss": None}, {"loss": 0.5})) == (0.4, 0.5)
    lowest, last = validation_losses(run_of(0, {"loss": 0.6}, {"loss": None}))
    assert lowest == 0.6
    assert math.isnan(last)


@pytest.mark.usefixtures("undrawn")
def test_a_report_has_the_steps_of_every_arm_that_takes_steps(tmp_path: Path) -> None:
    arms = {
        "baseline": ArmSpec([340, 350]),
        "arm": ArmSpec([300, 360], lr=1e-4),
        "linear-probe": ArmSpec([350, 350], learner="linear-probe"),
    }
    files = write_report(make_study(tmp_path / "runs", arms, target=0.86).results())
    found = json.loads(files["json"].read_text())
    assert found["header"]["target"] == {"metric": "accuracy", "value": 0.86}
    steps = {row["arm"]: row["steps_to_target"] for row in found["rows"]}
    assert steps == {"baseline": {"0": None, "1": 20}, "arm": {"0": None, "1": 15}, "linear-probe": None}
    assert {"precision", "recall", "specificity"} <= found["rows"][0]["summaries"].keys()
    assert "steps to a validation accuracy of 86 %" in files["markdown"].read_text()
    assert "steps to a validation accuracy of 86 %" in files["html"].read_text()
