"""Results: the ledger of one study, read back, with every figure recomputed from stored predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairtune.analysis.ledger_runs import LedgerRun, difference_of, steps_text, steps_to_loss
from fairtune.analysis.resampling import scored
from fairtune.analysis.statistics import PairedDifference, Summary, no_difference, paired_difference, summarise
from fairtune.analysis.verdicts import Verdict, judge, left_out_pairs
from fairtune.core.errors import LedgerError
from fairtune.ledger.seals import DAMAGED, WAITING, run_state
from fairtune.ledger.studies import read_study, require_study, run_folder, run_folders
from fairtune.settings.metrics import METRICS, title_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "LedgerRun", "Results", "load_results"]


@dataclass(frozen=True)
class Comparison:
    """An arm against another: the study's reference, or the arm that differs in nothing but the methods.

    Args:
        confounds: settings, other than methods, in which the two differ.
        slowdown: ratio of the median step times.
    """

    arm: str
    reference: str
    found: PairedDifference
    verdict: Verdict
    confounds: tuple[str, ...]
    slowdown: float | None


class Results:
    """What a study found. Everything is recomputed from the ledger."""

    def __init__(self, runs: Path, study: str) -> None:
        self.runs_folder = Path(runs)
        self.folder = require_study(self.runs_folder, study)
        self.study, self.plan = study, read_study(self.folder)
        if any("control" not in arm for arm in self.plan["arms"].values()):
            raise LedgerError(
                f"{self.folder}: its plan is that of an earlier fairtune, which had not decided which arms are compared. "
                "Run the study again: finished runs are kept, only the plan is written anew."
            )

    @property
    def kind(self) -> str:
        """What the study trains: `classify` or `language_model`."""
        return str(self.plan["task"]["kind"])

    @property
    def metric(self) -> str:
        return str(self.plan["task"]["metric"])

    @property
    def arms(self) -> list[str]:
        return list(self.plan["arms"])

    @property
    def reference(self) -> str:
        return str(self.plan["compare"]["to"])

    @property
    def confidence(self) -> float:
        return float(self.plan["compare"]["confidence"])

    @cached_property
    def runs(self) -> list[LedgerRun]:
        """Every run of the newest plan, in its order."""
        return [self._ledger_run(run) for run in self.plan["runs"]]

    def _ledger_run(self, run: dict[str, Any]) -> LedgerRun:
        folder = run_folder(self.runs_folder, self.study, run["arm"], run["seed"])
        return LedgerRun(run["arm"], run["seed"], run["position"], folder, run_state(folder, run["key"]))

    @cached_property
    def exclusions(self) -> list[str]:
        """Runs that are on disk but not counted, with the reason: damaged ones, and those that the newest plan does not have."""
        planned = {(run.arm, run.seed): run for run in self.runs}
        found = []
        for folder in run_folders(self.folder):
            run = planned.get((folder.arm, folder.seed))
            if run is not None and run.status == DAMAGED:
                found.append(f"{folder.name}: {run.problem}; move its folder away and run the study again")
            elif (run is None or run.status == WAITING) and run_state(folder).status != WAITING:
                other = "not in the newest plan" if run is None else "made with other settings than the newest plan's"
                found.append(f"{folder.name}: {other}")
        return found

    @property
    def failures(self) -> dict[str, str]:
        return {f"{r.arm}/seed-{r.seed}": str(r.result.get("reason")) for r in self.runs if r.status == "failed"}

    def finished(self, arm: str) -> list[LedgerRun]:
        return [run for run in self.runs if run.arm == arm and run.status == "finished"]

    def summary(self, arm: str, metric: str | None = None, which: Literal["test", "final"] = "test") -> Summary:
        """An arm's figures on the test split.

        Args:
            which: with the weights that were best on validation, or with those of the last step (language models only).
        """
        runs, name = self.finished(arm), metric or self.metric
        return summarise([(run.metrics if which == "test" else run.last)[name] for run in runs], self.confidence)

    def step_seconds(self, arm: str) -> float | None:
        """Median over seeds of the median optimizer step."""
        found = [run.result["step_seconds"]["median"] for run in self.finished(arm)]
        return float(np.median(found)) if found else None

    def tokens_per_second(self, arm: str) -> float | None:
        """Median over seeds of the real tokens that went through training, by the seconds of optimizer steps."""
        spent = [(run.result.get("tokens"), run.result.get("seconds", {}).get("step")) for run in self.finished(arm)]
        found = [tokens / seconds for tokens, seconds in spent if tokens and seconds]
        return float(np.median(found)) if found else None

    def steps_to_target(self, arm: str) -> dict[int, int | None] | None:
        """For each finished seed the step at which validation first reached the target loss, None if it never did.

        None altogether where the study states no target.
        """
        target = self.plan["compare"].get("target_loss")
        return None if target is None else {run.seed: steps_to_loss(run.events, target) for run in self.finished(arm)}

    def trainable_share(self, arm: str) -> float | None:
        found = self.finished(arm)
        return float(found[0].result["parameters"]["trainable_share"]) if found else None

    @cached_property
    def margin(self) -> float | None:
        """The margin against the reference, in the metric's unit."""
        return self.margin_against(self.reference)

    def margin_against(self, arm: str) -> float | None:
        """The margin in the metric's unit; a share is taken of the mean of the arm that is compared with."""
        margin: str | float | None = self.plan["compare"]["margin"]
        if isinstance(margin, str):
            mean = self.summary(arm).mean
            return float(margin[:-1]) / 100 * abs(mean) if math.isfinite(mean) else None
        return margin

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Each arm against the reference, then like with like where the study has a fairer arm to compare with."""
        pairs = [(arm, self.reference) for arm in self.arms if arm != self.reference]
        pairs += [(arm, control) for arm in self.arms if (control := self.control(arm)) not in (None, self.reference)]
        return self.compared(pairs)

    @cached_property
    def left_out(self) -> list[Comparison]:
        """Each arm of several methods against the arm that lacks one of them, corrected among themselves."""
        return self.compared(left_out_pairs({arm: self.methods(arm) for arm in self.arms}, self.reference))

    def compared(self, pairs: Sequence[tuple[str, str]]) -> list[Comparison]:
        """Arms against others, all p values corrected together."""
        found = [self._paired(arm, other) for arm, other in pairs]
        margins = [self.margin_against(other) for _, other in pairs]
        verdicts = judge(found, margins, self.confidence, METRICS[self.metric].lower_is_better)
        return [
            Comparison(arm, other, f, v, self._confounds(arm, other), self._slowdown(arm, other))
            for (arm, other), f, v in zip(pairs, found, verdicts, strict=True)
        ]

    def comparison(self, arm: str, reference: str | None = None) -> Comparison | None:
        wanted = (arm, reference or self.reference)
        return next((c for c in self.comparisons if (c.arm, c.reference) == wanted), None)

    def control(self, arm: str) -> str | None:
        """The fairest arm to compare with, as the plan has it: this arm's very settings without the effect of its methods."""
        control: str | None = self.plan["arms"][arm]["control"]
        return control

    def settings(self, arm: str) -> dict[str, Any]:
        """What an arm has besides its methods."""
        return dict(self.plan["arms"][arm]["train"])

    def methods(self, arm: str) -> list[dict[str, Any]]:
        """An arm's methods, each by its name with all its settings."""
        return list(self.plan["arms"][arm]["methods"])

    def _confounds(self, arm: str, other: str) -> tuple[str, ...]:
        a, b = self.settings(arm), self.settings(other)
        return tuple(name for name in a if a[name] != b[name])

    def _slowdown(self, arm: str, other: str) -> float | None:
        ours, theirs = self.step_seconds(arm), self.step_seconds(other)
        return ours / theirs if ours and theirs else None

    def _paired(self, arm: str, other: str) -> PairedDifference:
        theirs = {run.seed: run for run in self.finished(other)}
        pairs = [(run, theirs[run.seed]) for run in self.finished(arm) if run.seed in theirs]
        if not pairs:
            return no_difference(0, self.confidence)
        if reason := difference_of([run.test for pair in pairs for run in pair]):
            raise LedgerError(f"{self.folder}: runs of {arm} and {other} {reason}; they cannot be compared.")
        diverged = [run for pair in pairs for run in pair if not math.isfinite(run.metrics[self.metric])]
        if diverged:
            names = " and ".join(f"{run.arm}/seed-{run.seed}" for run in diverged)
            trouble = f"the {title_of(self.metric)} of {names} is not a finite number"
            return no_difference(len(pairs), self.confidence, trouble=trouble)
        return paired_difference(
            [scored(our_run.test) for our_run, _ in pairs],
            [scored(other_run.test) for _, other_run in pairs],
            self.metric,
            [our_run.metrics[self.metric] - other_run.metrics[self.metric] for our_run, other_run in pairs],
            self.confidence,
        )

    def step_factor(self, arm: str) -> float:
        """How many times as long a step takes with the arm's methods, counted in passes, as the plan has it."""
        return float(self.plan["arms"][arm]["step_factor"])

    def table(self) -> pd.DataFrame:
        """One row per arm: n, mean, sd, interval, difference to the reference, p, seconds per step, trainable share.

        Of language models also: the mean of the last weights (`mean` is that of the best), steps to the target loss,
        tokens per second.
        """
        import pandas as pd  # slow to import, and only notebooks ask for it

        rows = [
            self._row(arm) | (self._text_columns(arm) if self.kind == "language_model" else {}) for arm in self.arms
        ]
        return pd.DataFrame(rows).set_index("arm")

    def _row(self, arm: str) -> dict[str, Any]:
        summary, comparison = self.summary(arm), self.comparison(arm)
        found = comparison.found if comparison else None
        return {
            "arm": arm,
            "n": summary.n,
            "mean": summary.mean,
            "sd": summary.sd,
            "low": summary.low,
            "high": summary.high,
            "difference": found.difference if found else None,
            "difference_low": found.low if found else None,
            "difference_high": found.high if found else None,
            "p": comparison.verdict.p if comparison else None,
            "verdict": str(comparison.verdict) if comparison else "reference",
            "confounds": ", ".join(comparison.confounds) if comparison else "",
            "seconds_per_step": self.step_seconds(arm),
            "trainable_share": self.trainable_share(arm),
        }

    def _text_columns(self, arm: str) -> dict[str, Any]:
        steps = self.steps_to_target(arm)
        return {
            "final_mean": self.summary(arm, which="final").mean,
            "steps_to_target": None if steps is None else steps_text(list(steps.values())),
            "tokens_per_second": self.tokens_per_second(arm),
        }

    def __repr__(self) -> str:
        done = sum(run.status == "finished" for run in self.runs)
        return f"<Results of study '{self.study}': {len(self.arms)} arms, {done} of {len(self.runs)} runs finished>"


def load_results(runs: str | Path, study: str) -> Results:
    """The results of a study that was run before."""
    return Results(Path(runs), study)
