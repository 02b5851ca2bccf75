"""Results: the ledger of one study, read back, with every figure recomputed from stored predictions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from fairtune.analysis.arm_pairs import Comparison, counts_as_learned, most_times, resolve_margin
from fairtune.analysis.collapses import Collapses, compare_rates
from fairtune.analysis.comparisons import compare_left_out, compare_primaries, compare_raw
from fairtune.analysis.convergence import Reached, reached_by_seed, reached_text, target_of, validation_losses
from fairtune.analysis.decision_lines import HALF, VALIDATION, LinePolicy, line_metric
from fairtune.analysis.hardware import Places, find_places
from fairtune.analysis.ledger_runs import LedgerRun, difference_of
from fairtune.analysis.registration import KnownRun, StudyRegistration, register
from fairtune.analysis.resampling import bootstrap_variances, metric_from_totals
from fairtune.analysis.soundness import find_cautions
from fairtune.analysis.statistics import Summary, summarise, summarise_arm
from fairtune.analysis.study_verdict import StudyVerdict, judge_study
from fairtune.analysis.timings import StudyTiming, judge_times
from fairtune.analysis.tuned_arms import StudyTuning, read_tuning
from fairtune.core.cautions import Caution
from fairtune.core.errors import FairtuneError, LedgerError, nearest, one_of, shown
from fairtune.ledger.folders import require_study, run_folder, run_folders
from fairtune.ledger.seals import DAMAGED, WAITING, KeptStates, RunState
from fairtune.ledger.studies import gone_runs, read_plans, read_study
from fairtune.ledger.timings import read_sessions
from fairtune.settings.learners import Learner, learner_of
from fairtune.settings.metrics import METRICS, metrics_of_kind

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "LedgerRun", "Results", "load_results"]
OF_METRIC = ("comparisons", "left_out", "raw_differences", "margin", "collapses", "cautions")
"""What is worked out once, and follows from the metric."""


class Results:
    """What a study found. Everything is recomputed from the ledger."""

    def __init__(self, runs: Path, study: str, states: KeptStates | None = None) -> None:
        self.runs_folder, self._states = Path(runs), states or KeptStates()
        self.folder = require_study(self.runs_folder, study)
        self.study, self.plan = study, read_study(self.folder)
        self._known_variances: dict[tuple[str, tuple[int, ...]], dict[str, float]] = {}
        self._other_metric: str | None = None
        if any("trial" in arm for arm in self.plan["arms"].values()):
            raise LedgerError(
                f"{study} holds trials, which are scored on validation alone: their place is the report of "
                f"'{study.rpartition('/')[0]}'. `fairtune status {study}` lists them."
            )

    @property
    def kind(self) -> str:
        """What the study trains: `classify` or `language_model`."""
        return str(self.plan["task"]["kind"])

    @property
    def metric(self) -> str:
        return self._other_metric or str(self.plan["task"]["metric"])

    @property
    def arms(self) -> list[str]:
        """In the study's order; simple baselines come after the others, unless one is what the others are compared to."""
        first = str(self.plan["compare"]["to"])
        return sorted(self.plan["arms"], key=lambda arm: arm != first and self.learner(arm) is not None)

    @property
    def whole(self) -> Results:
        """The results of all arms, by which families are counted; these, unless only some arms are shown."""
        return self

    @property
    def reference(self) -> str:
        return str(self.registration.compare["to"])

    @property
    def confidence(self) -> float:
        return float(self.registration.compare["confidence"])

    @property
    def vocabulary(self) -> int | None:
        """Tokens that a language model chooses among; None for a classifier, or where it is not known."""
        if self.kind != "language_model":
            return None
        found = (self.plan.get("tokenizer") or {}).get("vocabulary") or self.plan["model"].get("vocabulary")
        return int(found) if found else None

    @cached_property
    def registration(self) -> StudyRegistration:
        """What was fixed before the first result, and what was changed since."""
        ended = [
            KnownRun(*place, state.result.get("time"), state.plan)
            for place, state in self._on_disk.items()
            if "result.json" in state.files
        ]
        return register(self.plan, read_plans(self.folder), ended, gone_runs(self.folder))

    @cached_property
    def _on_disk(self) -> dict[tuple[str, int], RunState]:
        """Every run that there is, whatever its plan."""
        return {(folder.arm, folder.seed): self._states.state(folder) for folder in run_folders(self.folder)}

    @cached_property
    def _planned(self) -> dict[tuple[str, int], LedgerRun]:
        return {(run.arm, run.seed): run for run in self.runs}

    @cached_property
    def runs(self) -> list[LedgerRun]:
        """Every run of the newest plan, in its order."""
        return [self._ledger_run(run) for run in self.plan["runs"]]

    def _ledger_run(self, run: dict[str, Any]) -> LedgerRun:
        arm, seed = run["arm"], run["seed"]
        folder = run_folder(self.runs_folder, self.study, arm, seed)
        state = self._on_disk.get((arm, seed), RunState(WAITING)).of(run["key"])
        return LedgerRun(arm, seed, run["position"], folder, state, self.line_policy)

    def line_policy(self) -> LinePolicy:
        """Where two classes are told apart, and by which metric that is picked."""
        return LinePolicy(self.registration.threshold, line_metric(str(self.plan["task"]["metric"])))

    @cached_property
    def exclusions(self) -> list[str]:
        """Runs that are on disk but not counted, with the reason: damaged ones, and those that the newest plan does not have."""
        found = []
        for (arm, seed), state in self._on_disk.items():
            run, name = self._planned.get((arm, seed)), f"{arm}/seed-{seed}"
            if run is not None and run.status == DAMAGED:
                found.append(f"{name}: {run.problem}; move its folder away and run the study again")
            elif (run is None or run.status == WAITING) and state.status != WAITING:
                other = "not in the newest plan" if run is None else "made with other settings than the newest plan's"
                found.append(f"{name}: {other}")
        return found

    @property
    def failures(self) -> dict[str, str]:
        return {f"{r.arm}/seed-{r.seed}": str(r.result.get("reason")) for r in self.runs if r.status == "failed"}

    def finished(self, arm: str) -> list[LedgerRun]:
        return list(self._finished.get(arm, ()))

    @cached_property
    def _finished(self) -> dict[str, list[LedgerRun]]:
        found: dict[str, list[LedgerRun]] = {}
        for run in self.runs:
            if run.status == "finished":
                found.setdefault(run.arm, []).append(run)
        return found

    def summary(
        self,
        arm: str,
        metric: str | None = None,
        which: Literal["test", "final"] = "test",
        seeds: Collection[int] | None = None,
    ) -> Summary:
        """An arm's figures on the test split.

        Args:
            which: with the weights that were best on validation, or with those of the last step (language models only).
            seeds: of these alone; None is all.
        """
        name = metric or self.metric
        runs = [run for run in self.finished(arm) if seeds is None or run.seed in seeds]
        values = [(run.metrics if which == "test" else run.last).get(name, math.nan) for run in runs]
        if which == "final" or len(runs) < 2 or not np.isfinite(values).all():
            return summarise(values, self.confidence)
        variance, sample = self._variance(arm, runs, name), runs[0].resampled(name)
        return summarise_arm(values, variance, sample, METRICS[name].bounds, self.confidence, most_times(self, arm))

    def _variance(self, arm: str, runs: list[LedgerRun], metric: str) -> float:
        """Of the mean of some runs of an arm, from the luck of seeds and examples together.

        Functions of the same counts are all found at once; what takes the scores costs more, and is found when it is asked for.
        """
        known = self._known_variances.setdefault((arm, tuple(run.seed for run in runs)), {})
        if metric not in known:
            own = [run.resampled(metric) for run in runs]
            if METRICS[metric].from_scores is not None:
                known |= bootstrap_variances(own, None, {}, weighted=[metric], keep=[metric])
            else:
                names = [name for name in runs[0].metrics if name in METRICS and METRICS[name].from_scores is None]
                figures = {name: metric_from_totals(name) for name in names}
                known |= bootstrap_variances(own, None, figures, keep=[metric])
        return known[metric]

    @cached_property
    def timing(self) -> StudyTiming | None:
        """What the timing experiment shows, `fairtune time` or `time: true`; None where there was none of this plan."""
        return judge_times(self.plan, read_sessions(self.folder)[0])

    @cached_property
    def tuning(self) -> StudyTuning | None:
        """How settings were chosen; None where they are as given."""
        finished = (run for run in self.runs if run.status == "finished")
        work = sum((run.result.get("tokens") or 0) * self.step_factor(run.arm) for run in finished)
        return read_tuning(self.runs_folder, self.study, self.plan, work)

    def slowdown(self, arm: str, other: str) -> float | None:
        """The ratio of two arms' step times, timed in turns; None where they were not, or not with a result to trust."""
        found = self.timing.between(arm, other) if self.timing is not None and self.timing.trusted else None
        return None if found is None or found.implausible else found.found.ratio

    @cached_property
    def hardware(self) -> Places:
        """On which kinds of hardware runs were, and which arms were compared across kinds."""
        return find_places(self)

    def clocked(self, arm: str) -> list[LedgerRun]:
        """Finished runs whose own times may stand beside other arms': none where they were on unlike hardware."""
        return [] if arm in self.hardware.unlike else self.finished(arm)

    def step_seconds(self, arm: str) -> float | None:
        """Median over seeds of the median optimizer step, as runs recorded it; arms are compared by `timing` alone."""
        steps = [run.result.get("step_seconds") for run in self.clocked(arm)]
        found = [one["median"] for one in steps if one is not None]  # what is fitted at once has none
        return float(np.median(found)) if found else None

    def tokens_per_second(self, arm: str) -> float | None:
        """Median over seeds of the real tokens that went through training, by the seconds of optimizer steps."""
        spent = [(run.result.get("tokens"), run.result.get("seconds", {}).get("step")) for run in self.clocked(arm)]
        found = [tokens / seconds for tokens, seconds in spent if tokens and seconds]
        return float(np.median(found)) if found else None

    def steps_to_target(self, arm: str) -> dict[int, int | None] | None:
        """For each finished seed the step at which validation first reached the target, None if it never did.

        None altogether where the study states no target, and of an arm that has no steps.
        """
        found = self.reached(arm)
        return None if found is None else {seed: one.step if one else None for seed, one in found.items()}

    def reached(self, arm: str) -> dict[int, Reached | None] | None:
        """The same with the epochs until then."""
        target, learner = target_of(self.plan), self.learner(arm)
        if target is None or (learner is not None and not learner.trained):
            return None
        return reached_by_seed(self.finished(arm), target)

    def validation_losses(self, arm: str, seeds: Collection[int] | None = None) -> tuple[Summary, Summary]:
        """The lowest and the last validation loss of an arm's runs, each with Student's t over seeds.

        Args:
            seeds: of these alone; None is all.
        """
        found = [validation_losses(run) for run in self.finished(arm) if seeds is None or run.seed in seeds]
        lowest, last = ([pair[place] for pair in found] for place in (0, 1))
        return summarise(lowest, self.confidence), summarise(last, self.confidence)

    def trainable_share(self, arm: str) -> float | None:
        found = [run.result["parameters"] for run in self.finished(arm) if "parameters" in run.result]
        return float(found[0]["trainable_share"]) if found else None

    @cached_property
    def margin(self) -> float | None:
        """The margin against the reference, in the metric's unit."""
        return self.margin_against(self.reference)

    def margin_against(self, arm: str) -> float | None:
        """The margin in the metric's unit; a share is taken of the mean of the arm that is compared with."""
        return resolve_margin(self.registration.compare["margin"], self.summary(arm).mean)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Each arm's primary comparison: the family of verdicts."""
        for arm in self.arms:  # whose draws comparisons use again
            if (runs := self.finished(arm)) and difference_of([run.test for run in runs]) is None:
                self.summary(arm)
        return compare_primaries(self)

    def comparisons_by(self, metric: str) -> list[Comparison]:
        """Each arm's primary comparison by another metric: a family of its own, beside the study's verdict."""
        return self.by(metric).comparisons

    def by(self, metric: str) -> Self:
        """These results as another metric shows them. Checkpoints stay those that the study's own metric selected.

        A margin that is no share is in the unit of the study's metric, so it means nothing here.
        """
        if metric == self.metric:
            return self
        allowed = [name for name in metrics_of_kind(self.kind) if METRICS[name].fits(self._classes)]
        if metric not in allowed:
            raise FairtuneError(
                f"metric: found {shown(metric)}; allowed for this study: {one_of(allowed)}.{nearest(metric, allowed)}"
            )
        share = isinstance(self.registration.compare.get("margin"), str)
        found = self._changed(OF_METRIC, {} if share else {"margin": None})
        found._other_metric = metric
        return found

    def at(self, threshold: str) -> Self:
        """These results with two classes told apart elsewhere, whatever was planned: at `half`, or as `validation` has it."""
        if threshold not in (HALF, VALIDATION) or (threshold == VALIDATION and self._classes != 2):
            raise FairtuneError(f"threshold: found {shown(threshold)}; allowed: half, and validation for two classes.")
        found = self._changed((*OF_METRIC, "runs", "_planned", "_finished"), {"threshold": threshold})
        found._known_variances = {}
        return found

    def with_margin(self, margin: str | float) -> Self:
        """These results with another margin, a share such as `5%` or in the metric's unit, as a claim may state its own."""
        return self._changed(OF_METRIC, {"margin": margin})

    @property
    def _classes(self) -> int:
        return len(self.plan["task"].get("labels") or ())

    def _changed(self, parts: Sequence[str], compare: Mapping[str, Any]) -> Self:
        """The same results, some parts of which are to be worked out anew by another rule of comparison."""
        found, registration = copy(self), self.registration
        for name in parts:
            found.__dict__.pop(name, None)
        found.__dict__["registration"] = replace(registration, compare={**registration.compare, **compare})
        return found

    @cached_property
    def left_out(self) -> list[Comparison]:
        """Each arm of several methods against the arm that lacks one of them: a secondary family."""
        return compare_left_out(self)

    @cached_property
    def raw_differences(self) -> list[Comparison]:
        """Plain differences to the reference, of arms whose primary comparison is another; they have no verdict."""
        return compare_raw(self)

    def comparison(self, arm: str, reference: str | None = None) -> Comparison | None:
        """An arm's primary comparison, or the one with a named arm, where there is one."""
        known = [*self.comparisons, *(self.raw_differences if reference is not None else ())]
        return next((c for c in known if c.arm == arm and reference in (None, c.reference)), None)

    @cached_property
    def collapses(self) -> dict[str, Collapses]:
        """Arms of which a run did not learn, with how often, beside the arm that each is compared with."""
        found = {}
        for arm in self.arms:
            if not counts_as_learned(self, arm):
                continue
            other = self.primary(arm)
            other = other if other is not None and counts_as_learned(self, other) else None
            others = self.finished(other) if other is not None else ()
            found[arm] = compare_rates(arm, self.finished(arm), self.vocabulary, other, others, self.metric)
        return {arm: one for arm, one in found.items() if one.seeds}

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """What to mind before anything here is believed, the gravest first."""
        return find_cautions(self)

    def verdict(self) -> StudyVerdict:
        """What the study supports, as a page to read aloud (`print` it) and as data."""
        return judge_study(self)

    def primary(self, arm: str) -> str | None:
        """The arm that this one is compared with, as the plan has it; None for the reference."""
        if arm == self.reference:
            return None
        planned: str | None = self.plan["arms"][arm].get("primary")
        if planned is not None and self.plan["compare"]["to"] == self.reference:
            return planned
        return self.control(arm) or self.reference

    def control(self, arm: str) -> str | None:
        """The fairest arm to compare with, as the plan has it: this arm's very settings without the effect of its methods."""
        control: str | None = self.plan["arms"][arm]["control"]
        return control

    def settings(self, arm: str) -> dict[str, Any]:
        """What an arm has besides its methods; what every arm chose by trials of its own is `tuned`, and differs between none."""
        tuned = (self.plan.get("tuning") or {}).get("fields", ())
        own = self.plan["arms"][arm]["train"]
        return {**own, **{name: "tuned" for name in tuned if name in own}}

    def chosen_settings(self, arm: str) -> dict[str, Any]:
        """The same with the values that its runs have."""
        return dict(self.plan["arms"][arm]["train"])

    def methods(self, arm: str) -> list[dict[str, Any]]:
        """An arm's methods, each by its name with all its settings."""
        return list(self.plan["arms"][arm]["methods"])

    def learner(self, arm: str) -> Learner | None:
        """What an arm learns with, where it is not fine-tuned."""
        return learner_of(self.plan["arms"][arm])

    def step_factor(self, arm: str) -> float:
        """How many times as long a step takes with the arm's methods, counted in passes, as the plan has it."""
        return float(self.plan["arms"][arm]["step_factor"])

    def table(self) -> pd.DataFrame:
        """One row per arm: n, mean, sd, interval, its primary comparison, p, verdict, seconds per step, trainable share.

        Steps to the target, where the study states one. Of language models also: the mean of the last weights (`mean` is that of
        the best), tokens per second.
        """
        import pandas as pd  # slow to import, and only notebooks ask for it

        rows = [
            self._row(arm) | (self._text_columns(arm) if self.kind == "language_model" else {}) for arm in self.arms
        ]
        return pd.DataFrame(rows).set_index("arm")

    def _row(self, arm: str) -> dict[str, Any]:
        summary, comparison, steps = self.summary(arm), self.comparison(arm), self.steps_to_target(arm)
        low, high = comparison.alone if comparison else (None, None)
        family_low, family_high = comparison.family if comparison else (None, None)
        timed = self.timing.arms.get(arm) if self.timing else None
        return {
            "arm": arm,
            "n": summary.n,
            "mean": summary.mean,
            "sd": summary.sd,
            "low": summary.low,
            "high": summary.high,
            "against": comparison.reference if comparison else None,
            "difference": comparison.difference if comparison else None,
            "difference_low": low,
            "difference_high": high,
            "family_low": family_low,
            "family_high": family_high,
            "p": comparison.verdict.p if comparison else None,
            "verdict": str(comparison.verdict) if comparison else "reference",
            "confounds": ", ".join(comparison.confounds) if comparison else "",
            "seconds_per_step": timed.seconds if timed else None,
            "time_ratio": comparison.slowdown if comparison else None,
            "trainable_share": self.trainable_share(arm),
            **({} if steps is None else {"steps_to_target": reached_text(steps.values())}),
        }

    def _text_columns(self, arm: str) -> dict[str, Any]:
        return {
            "final_mean": self.summary(arm, which="final").mean,
            "tokens_per_second": self.tokens_per_second(arm),
        }

    def __repr__(self) -> str:
        done = sum(run.status == "finished" for run in self.runs)
        return f"<Results of study '{self.study}': {len(self.arms)} arms, {done} of {len(self.runs)} runs finished>"


def load_results(runs: str | Path, study: str, states: KeptStates | None = None) -> Results:
    """The results of a study that was run before.

    Args:
        states: of runs, from one that reads the same ledger again and again.
    """
    return Results(Path(runs), study, states)
