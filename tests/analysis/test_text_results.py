"""Results of language models: best and final, the target loss, tokens per second, and what is not comparable."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.planned import planned_arms
from tests.sealed import close_again

from fairtune.analysis.results import Results, load_results
from fairtune.core.errors import LedgerError
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import run_folder
from fairtune.ledger.predictions import TextScores, read_predictions, write_predictions
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import write_study

DOCUMENTS = 60
LOSS = {"baseline": 2.0, "oelm": 2.2, "close": 2.01}


class TextLedger:
    """A study of language models as it lies on disk, made without training anything."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs

    def make(self, seeds: int = 3, compare: dict[str, Any] | None = None, loss: dict[str, float] | None = None) -> None:
        train, methods = {"lr": 3e-4}, {"oelm": [{"orthogonal_qk": {}}], "close": [{"fgm": {}}]}
        plan = {
            "task": {"name": "stories", "kind": "language_model", "metric": "perplexity"},
            "model": {"name": "gpt-tiny", "vocabulary": 2000},
            "arms": planned_arms({arm: (methods.get(arm, []), train) for arm in LOSS}, "baseline"),
            "compare": {"to": "baseline", "margin": "5%", "confidence": 0.95, "target_loss": 2.15, **(compare or {})},
            "runs": [
                {"arm": arm, "seed": seed, "position": 0, "key": f"{arm}-{seed}"}
                for seed in range(seeds)
                for arm in LOSS
            ],
        }
        (self.runs / "s").mkdir(parents=True)
        write_study(self.runs / "s", {"plan": "0", **plan})
        for run in plan["runs"]:
            self.finish(run, (loss or LOSS)[run["arm"]])

    def finish(self, run: dict[str, Any], loss: float) -> None:
        folder = run_folder(self.runs, "s", run["arm"], run["seed"])
        folder.write_plan(run)
        seed = run["seed"]
        best, final = (scores(loss + extra + 0.002 * seed, [seed, len(run["arm"])]) for extra in (0.0, 0.1))
        write_predictions(folder.predictions, {"validation": best, "test": best, "final": final})
        log = EventLog(folder.events)
        for place, above in enumerate((2.0, 0.1, 0.0, 0.05)):
            step = 100 * (place + 1 + seed)
            log.write("evaluation", place, split="validation", step=step, loss=loss + above, perplexity=1.0)
        log.write("evaluation", 5, split="test", step=1, loss=0.0)
        log.close()
        result = {
            "status": "finished", "tokens": 1_000_000, "seconds": {"step": 50.0 * (1 + seed), "validation": 9.0},
            "step_seconds": {"median": 0.1}, "parameters": {"trainable_share": 1.0},
            "metrics": {"test": {"perplexity": 0.123}},
        }  # fmt: skip
        close_run(folder, run["key"], result)

    def change(self, name: str, **columns: Any) -> None:
        """Change columns of what a run stored."""
        arm, seed = name.split("/seed-")
        folder = run_folder(self.runs, "s", arm, int(seed))
        path = folder.predictions
        parts = {split: read_predictions(path, split) for split in ("validation", "test", "final")}
        write_predictions(path, {split: replace(part, **columns) for split, part in parts.items()})
        close_again(folder)

    def results(self) -> Results:
        return load_results(self.runs, "s")


def scores(loss: float, seed: list[int]) -> TextScores:
    """Documents of which all tokens together have just this loss; every arm has the same documents."""
    tokens = np.arange(DOCUMENTS) % 7 + 10
    noise = np.random.default_rng(seed).normal(0, 0.5, DOCUMENTS)
    nll = tokens * loss + noise - noise.mean()
    return TextScores(tuple(f"d{i}" for i in range(DOCUMENTS)), nll, tokens, 5 * tokens, tokens - 1, tokens // 2)


@pytest.fixture
def ledger(tmp_path: Path) -> TextLedger:
    return TextLedger(tmp_path / "runs")


def test_figures_are_recomputed_from_the_sums_of_documents(ledger: TextLedger) -> None:
    ledger.make()
    results = ledger.results()
    assert results.kind == "language_model"
    first = results.finished("baseline")[0]
    assert first.metrics["loss"] == pytest.approx(2.0)
    assert first.metrics["perplexity"] == pytest.approx(math.exp(2.0))
    assert first.metrics["bits_per_byte"] == pytest.approx(2.0 / math.log(2) / 5)
    assert first.final is not None
    assert first.final["perplexity"] == pytest.approx(math.exp(2.1))
    assert results.summary("baseline", "loss").mean == pytest.approx(2.002)
    assert results.summary("baseline", "loss", which="final").mean == pytest.approx(2.102)


def test_the_table_has_best_and_final_steps_and_tokens(ledger: TextLedger) -> None:
    ledger.make()
    table = ledger.results().table()
    assert table.loc["baseline", "mean"] == pytest.approx(math.exp(2.002), rel=1e-4)
    assert table.loc["baseline", "final_mean"] == pytest.approx(math.exp(2.102), rel=1e-4)
    assert table.loc["baseline", "tokens_per_second"] == pytest.approx(10_000), "the median over seeds"
    assert table.loc["baseline", "steps_to_target"] == "300 (3 of 3, 200 to 400)"
    assert table.loc["oelm", "steps_to_target"] == "not reached (0 of 3)"
    assert table.loc["oelm", "difference"] > 0, "ours - theirs in the metric's unit, though lower is better"


def test_verdicts_at_five_percent_of_the_references_perplexity(ledger: TextLedger) -> None:
    ledger.make()
    results = ledger.results()
    assert results.margin == pytest.approx(0.05 * math.exp(2.002), rel=1e-4)
    found = {c.arm: c.verdict for c in results.comparisons}
    assert str(found["oelm"]) == "inferior"
    assert found["close"].word == "equivalent"


def test_perplexities_are_compared_by_their_ratio_and_shown_in_their_unit(ledger: TextLedger) -> None:
    ledger.make()
    found = {c.arm: c for c in ledger.results().comparisons}["oelm"]
    assert found.found.difference == pytest.approx(0.2), "on the log scale"
    assert found.difference == pytest.approx(math.exp(2.002) * math.expm1(0.2), rel=1e-4)
    low, high = found.alone
    assert low is not None
    assert high is not None
    assert 0 < low < found.difference < high
    assert (low / found.means[1] + 1) * (high / found.means[1] + 1) == pytest.approx(math.exp(0.4)), "even as ratios"


def test_without_a_margin_a_loss_is_worse_and_a_gain_better(ledger: TextLedger) -> None:
    ledger.make(compare={"margin": None}, loss={**LOSS, "close": 1.7})
    found = {c.arm: str(c.verdict) for c in ledger.results().comparisons}
    assert found == {"oelm": "worse", "close": "better"}


def test_steps_to_the_target_by_seed(ledger: TextLedger) -> None:
    ledger.make()
    results = ledger.results()
    assert results.steps_to_target("baseline") == {0: 200, 1: 300, 2: 400}
    assert results.steps_to_target("oelm") == {0: None, 1: None, 2: None}


def test_without_a_target_nobody_is_said_to_have_missed_it(ledger: TextLedger) -> None:
    ledger.make(compare={"target_loss": None})
    results = ledger.results()
    assert results.steps_to_target("baseline") is None
    assert "steps_to_target" not in results.table()


def test_one_seed_is_no_verdict(ledger: TextLedger) -> None:
    ledger.make(seeds=1)
    table = ledger.results().table()
    assert table.loc["oelm", "verdict"].startswith("no verdict (one run only")
    assert table.loc["oelm", "difference"] == pytest.approx(math.exp(2.2) - math.exp(2.0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_document_without_a_finite_loss_is_reported_and_hides_no_other_arm(ledger: TextLedger, value: float) -> None:
    ledger.make()
    nll = np.full(DOCUMENTS, 20.0)
    nll[7] = value
    ledger.change("oelm/seed-1", nll=nll)
    table = ledger.results().table()
    assert table.loc["oelm", "verdict"] == "no verdict (the perplexity of oelm/seed-1 is not a finite number)"
    assert not math.isfinite(table.loc["oelm", "mean"])
    assert pd.isna(table.loc["oelm", "sd"])
    assert table.loc["close", "verdict"].startswith("equivalent")


def test_a_margin_of_a_perplexity_that_is_no_number_excuses_nothing(ledger: TextLedger) -> None:
    ledger.make()
    ledger.change("baseline/seed-1", nll=np.full(DOCUMENTS, math.inf))
    results = ledger.results()
    assert results.margin is None
    assert {c.verdict.word for c in results.comparisons} == {"no verdict"}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"ids": tuple(f"other{i}" for i in range(DOCUMENTS))}, "were scored on different documents"),
        ({"bytes": np.full(DOCUMENTS, 9)}, "were scored on different documents"),
        ({"tokens": np.full(DOCUMENTS, 9)}, "split the documents into different tokens"),
    ],
)
def test_arms_with_other_documents_or_tokens_are_not_compared(
    ledger: TextLedger, columns: dict[str, Any], reason: str
) -> None:
    ledger.make()
    ledger.change("oelm/seed-2", **columns)
    with pytest.raises(LedgerError, match=f"runs of oelm and baseline {reason}; they cannot be compared"):
        _ = ledger.results().comparisons


def test_a_run_that_stored_no_final_scores_is_reported_with_its_file(ledger: TextLedger) -> None:
    ledger.make()
    folder = run_folder(ledger.runs, "s", "oelm", 0)
    write_predictions(folder.predictions, {"test": read_predictions(folder.predictions, "test")})
    close_again(folder)
    with pytest.raises(LedgerError, match=r"oelm/seed-0/predictions\.parquet: nothing was scored as 'final'"):
        ledger.results().summary("oelm", which="final")
