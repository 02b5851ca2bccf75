"""What results say against themselves: arms that did not learn, budgets that were too short, figures that cannot be.

These are the cautions that only results show; those that the plan shows come before them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from fairtune.analysis import hardware
from fairtune.analysis.arm_pairs import counts_as_learned
from fairtune.analysis.collapses import CHANCE, GUESS, RANKING, UNRANKED, Collapses, is_ranked, majority_share
from fairtune.analysis.cut_batches import cut_cautions
from fairtune.analysis.hardware import Places
from fairtune.analysis.ledger_runs import LedgerRun, disagreeing_metrics
from fairtune.analysis.registration import TITLES, StudyRegistration, day
from fairtune.analysis.run_conditions import list_texts
from fairtune.analysis.scales import scale_of
from fairtune.analysis.simple_baselines import ComparedResults, find_unbeaten
from fairtune.analysis.statistics import Summary
from fairtune.analysis.tuned_arms import StudyTuning, tuning_cautions
from fairtune.core.cautions import Caution, Grade, caution_from_json, gravest_first
from fairtune.core.numbers import plural
from fairtune.ledger.predictions import Predictions
from fairtune.settings.bands import find_band
from fairtune.settings.few_labels import examples_used
from fairtune.settings.metrics import METRICS

CLOSE = 1e-6
"""How near to a whole number of examples an accuracy must be."""
RISE = 0.005
"""Of a score between 0 and 1, or a share of a loss: a smaller rise between the last two evaluations is none."""
ALIKE = 0.5
"""From this p on, rates of runs that did not learn are as alike as chance makes them."""
FEWEST_EVALUATIONS = 3
"""With fewer one cannot tell whether a curve has come to rest."""


class CheckedResults(ComparedResults, Protocol):
    """What the checks take besides."""

    @property
    def collapses(self) -> dict[str, Collapses]: ...
    @property
    def tuning(self) -> StudyTuning | None: ...
    @property
    def hardware(self) -> Places: ...
    def summary(self, arm: str, metric: str | None = None) -> Summary: ...


def find_cautions(results: CheckedResults) -> tuple[Caution, ...]:
    """Everything to mind before a study's verdicts are believed, the gravest first."""
    planned = [caution_from_json(found) for found in results.plan.get("cautions") or ()]
    found = [
        *_not_learned(results),  # first: where this holds, nothing else matters
        *_registration(results.registration),
        *find_unbeaten(results),
        *tuning_cautions(results.tuning),
        *_badly_tuned(results),
        *planned,
        *_collapses(results),
        *_short_budgets(results),
        *_bands(results),
        *hardware.find_cautions(results, results.hardware),
        *_impossible_figures(results),
        *_threads(results),
        *cut_cautions(results),
        *_disturbed(results),
    ]
    return gravest_first(found)


def _registration(found: StudyRegistration) -> Iterator[Caution]:
    if found.recorded is None:
        yield Caution(
            "warning", "no-registration", "there is no record of when this study was planned",
            "what was changed after its results were known cannot be told", "Bring its `plans` and `history.json` back",
        )  # fmt: skip
    if found.missing:
        yield Caution(
            "warning", "plan-missing", f"runs were made under plans that are not on record ({', '.join(found.missing)})",
            "nobody can tell what was planned before they were seen", "Bring the study's `plans` folder back",
        )  # fmt: skip
    if found.reanalysed:
        yield Caution(
            "warning", "reanalysed", f"this is a new analysis, asked for on {day(found.reanalysed)} with `--reanalyse`",
            "it was chosen when results were known", "Read its verdicts as suggestions for another study",
        )  # fmt: skip
    elif found.overruled:
        names = " and ".join(TITLES[name] for name in found.overruled)
        yield Caution(
            "warning", "changed-after-results", f"after results were known, another {names} was planned",
            "whoever moves the line after the shot always hits, so verdicts still go by what was planned before",
            "Use `--reanalyse` for verdicts by the new plan, which the report will say",
        )  # fmt: skip
    if found.dropped and not found.reanalysed:
        seeds = ", ".join(map(str, found.dropped))
        yield Caution(
            "warning", "dropped-seeds", f"the newest plan leaves out seeds that have results ({seeds})",
            "whoever may choose seeds may choose the answer, so no verdict is given", "Put them back into the plan",
        )  # fmt: skip
    if gone := (*found.given_up, *found.given_up_learners):
        yield Caution(
            "warning", "given-up", f"the newest plan does not have {', '.join(gone)}, which had results",
            "the best of several tries looks better than it is, so they still count in the correction",
            "Put them back into the plan, or report them beside the others",
        )  # fmt: skip


def _badly_tuned(results: CheckedResults) -> Iterator[Caution]:
    """A partner that is better with another arm's choice than with its own."""
    sign = -1 if METRICS[results.metric].lower_is_better else 1
    for found in results.comparisons:
        gain, p = found.difference, found.found.p
        if not results.plan["arms"][found.arm].get("matches") or gain is None or p is None:
            continue
        if p < 1 - results.confidence and sign * gain > 0:
            scale = scale_of(results.metric)
            size = scale.distance(gain) if scale.plain else f"{scale.distance(gain)} points"
            yield Caution(
                "warning",
                "badly-tuned",
                f"{found.arm}, which has another arm's settings, is better than {found.reference} as that was tuned, by {size}",
                "its trials chose badly, so whatever is compared with it alone looks better than it is",
                "Give trials more seeds or a larger budget; verdicts here must hold beside both",
            )


def _not_learned(results: CheckedResults) -> Iterator[Caution]:
    """The reference and the controls must have learned something."""
    bases = dict.fromkeys([results.reference, *(p for arm in results.arms if (p := results.primary(arm)) is not None)])
    for arm in bases:
        finished = results.finished(arm)
        if not finished or not counts_as_learned(results, arm):
            continue
        if not isinstance(finished[0].test, Predictions):
            if len(_seeds(results, arm)) == len(finished):
                yield _has_not_learned(f"{arm} is {GUESS}")
            continue
        majority = majority_share(finished[0].test)
        if majority == 1:
            continue
        if is_ranked(results.metric):
            yield from _not_ranked(results, arm)
            continue
        mean = results.summary(arm, "accuracy")
        if mean.mean <= majority or all(run.seed in _seeds(results, arm) for run in finished):
            where = "at" if mean.mean > majority - 0.005 else "below"
            text = f"{arm} is {where} the majority class: {100 * mean.mean:.1f} %, always the same class has {100 * majority:.1f} %"
            yield _has_not_learned(text)
        elif mean.low is not None and mean.low <= majority:
            figures = (
                f"its accuracy, {100 * mean.mean:.1f} %, cannot be told from the majority class, {100 * majority:.1f} %"
            )
            text = f"{arm} may not have learned: {figures}"
            yield Caution(
                "warning", "hardly-learned", text, "a comparison with it says little about methods",
                "Train longer, or with another learning rate, or add seeds",
            )  # fmt: skip


def _not_ranked(results: CheckedResults, arm: str) -> Iterator[Caution]:
    """The same where the study's metric knows no predicted classes."""
    mean = results.summary(arm, RANKING)
    if len(_seeds(results, arm)) == mean.n or not mean.mean > CHANCE:
        yield _has_not_learned(f"{arm} is {UNRANKED}: ROC AUC {100 * mean.mean:.1f}, scores that say nothing have 50")
    elif mean.low is not None and mean.low <= CHANCE:
        yield Caution(
            "warning", "hardly-learned", f"{arm} may not have learned: its ROC AUC, {100 * mean.mean:.1f}, cannot be told from 50",
            "a comparison with it says little about methods", "Train longer, or with another learning rate, or add seeds",
        )  # fmt: skip


def _has_not_learned(text: str) -> Caution:
    return Caution(
        "warning", "not-learned", text, "it has not learned, so nothing that is compared with it compares methods",
        "Train longer, or with another learning rate",
    )  # fmt: skip


def _seeds(results: CheckedResults, arm: str) -> tuple[int, ...]:
    found = results.collapses.get(arm)
    return found.seeds if found else ()


def _threads(results: CheckedResults) -> Iterator[Caution]:
    """Runs of one study with different numbers of threads: sums are added up in another order."""
    runs = [run for arm in results.arms for run in results.finished(arm)]
    captured = [found for run in runs if (found := run.environment) and found.get("device") == "cpu"]
    counts = Counter(found["torch"].get("threads") for found in captured if isinstance(found.get("torch"), dict))
    if len(counts) > 1:
        seen = ", ".join(f"{number} with {threads}" for threads, number in counts.most_common())
        yield Caution(
            "note", "mixed-threads", f"runs were trained with different numbers of threads ({seen})",
            "another number adds up in another order, so that the last bits of a result differ, and its times say nothing",
            "Give `execution: {threads: n}` the same n whenever the study is run",
        )  # fmt: skip


def _disturbed(results: CheckedResults) -> Iterator[Caution]:
    """Runs that had others on their device, or a device that was slowed down, by its samples."""
    found = [run.conditions for arm in results.arms for run in results.finished(arm) if run.conditions is not None]
    shared = [one.sharing_text for one in found if one.is_shared]
    slowed = [one.slowing_text for one in found if one.is_slowed]
    if shared:
        yield Caution(
            "note", "shared-device", f"{plural(len(shared), 'run')} shared the device with other work ({list_texts(shared)})",
            "times of such runs say little, though their scores are what they are",
            "Compare times with `fairtune time`, on a device that is otherwise idle",
        )  # fmt: skip
    if slowed:
        yield Caution(
            "note", "slowed-device", f"the GPU of {plural(len(slowed), 'run')} was slowed down ({list_texts(slowed)})",
            "times of such runs say little, though their scores are what they are",
            "See to cooling and power before times are compared",
        )  # fmt: skip


def _collapses(results: CheckedResults) -> Iterator[Caution]:
    for found in results.collapses.values():
        whole = len(found.seeds) == found.finished
        if whole and results.primary(found.arm) is None:
            continue  # the reference, of which more is said
        why = "the arm as it is set up does not train" if whole else "a few such runs decide a mean and its interval"
        do = (
            "Look for the cause before a method is blamed"
            if whole
            else "Report how often it happens; the verdict is given without them too"
        )
        grade: Grade = "note" if found.p is not None and found.p >= ALIKE else "warning"
        yield Caution(grade, "collapsed", str(found), why, do)


def _short_budgets(results: CheckedResults) -> Iterator[Caution]:
    rising, last = [], []
    for arm in results.arms:
        curves = [_validation(run, results.metric) for run in results.finished(arm)]
        curves = [curve for curve in curves if len(curve) >= FEWEST_EVALUATIONS]
        if len(curves) < 2:
            continue
        gains = [_gain(curve, results.metric) for curve in curves]
        error = float(np.std(gains, ddof=1)) / math.sqrt(len(gains))
        if float(np.mean(gains)) > max(RISE, 2 * error):
            rising.append(arm)
        elif all(_best_is_last(curve, results.metric) for curve in curves):
            last.append(arm)
    if rising:
        yield Caution(
            "warning", "still-rising", f"validation curves of {', '.join(rising)} were still rising at the end of the budget",
            "which arm is ahead may change with more training", "Train longer, or report the budget with the verdict",
        )  # fmt: skip
    if last:
        yield Caution(
            "note", "best-is-last", f"in every run of {', '.join(last)} the best step was the last",
            "more training might have helped", "Try a larger budget for all arms",
        )  # fmt: skip


def _validation(run: LedgerRun, metric: str) -> list[float]:
    """The metric on validation over a run, or the loss where the event lines have only that."""
    evaluations = [e for e in run.events_of("evaluation") if e.get("split") == "validation"]
    values = [e.get(metric, e.get("loss")) for e in evaluations]
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def _gain(curve: Sequence[float], metric: str) -> float:
    """How much better the last evaluation was than the best before; of a loss, as a share of it."""
    if METRICS[metric].lower_is_better:
        best = min(curve[:-1])
        return (best - curve[-1]) / best if best else 0.0
    return curve[-1] - max(curve[:-1])


def _best_is_last(curve: Sequence[float], metric: str) -> bool:
    return curve[-1] == (min(curve) if METRICS[metric].lower_is_better else max(curve)) and curve[-1] not in curve[:-1]


def _bands(results: CheckedResults) -> Iterator[Caution]:
    """Whether the reference reaches what is published for its model and task."""
    arm, plan = results.reference, results.plan
    model = str(plan["arms"][arm]["train"].get("model") or plan["model"]["name"])
    band = find_band(model, str(plan["task"]["name"]), results.metric)
    summary = results.summary(arm)
    other = results.methods(arm) or results.learner(arm) is not None  # what is published is plain fine-tuning
    if band is None or summary.high is None or other or summary.high >= band.low:
        return
    if any(found.get("code") == "small-budget" for found in plan.get("cautions") or ()):
        return  # the plan has said it
    scale, used = scale_of(results.metric), _used(plan, arm)
    cut = f", trained on {used[0]:,} of {used[1]:,} examples" if used is not None else ""
    yield Caution(
        "note" if used is not None else "warning", "below-band",
        f"{arm} is at {scale.value(summary.mean)} (n = {summary.n}{cut}); published: {band}",
        "what holds for a baseline that is not trained out need not hold for one that is",
        "Train on all examples before publishing" if used is not None else "Look for the fault before comparing methods with it",
    )  # fmt: skip


def _used(plan: Mapping[str, Any], arm: str) -> tuple[int, int] | None:
    """Training examples, of all, where an arm uses fewer."""
    there = (plan["task"].get("rows") or {}).get("train")
    used = examples_used(plan["arms"][arm]["train"].get("examples"), there or 0, len(plan["task"].get("labels") or ()))
    return (used, there) if there and used < there else None


def _impossible_figures(results: CheckedResults) -> Iterator[Caution]:
    """Stored figures that do not follow from stored predictions."""
    for run in results.runs:
        recorded = (run.result.get("metrics") or {}).get("test") if run.status == "finished" else None
        if not isinstance(recorded, dict):
            continue
        name = f"{run.arm}/seed-{run.seed}"
        found = run.half_metrics  # which is what runs record
        wrong = disagreeing_metrics(recorded, found)
        if not wrong:
            continue
        accuracy = recorded.get("accuracy")
        n = len(run.test.ids)
        odd = isinstance(accuracy, float) and abs(accuracy * n - round(accuracy * n)) > CLOSE * n
        impossible = f"; and {accuracy:g} is no multiple of 1/{n}" if odd and isinstance(run.test, Predictions) else ""
        yield Caution(
            "warning", "figures-disagree",
            f"{name}: its result says {wrong[0]} {_plain(recorded[wrong[0]])}, its predictions {found[wrong[0]]:.6g}"
            f"{impossible}",
            "a figure that does not follow from predictions was not measured on them",
            "This report goes by the predictions; find out who wrote the figure",
        )  # fmt: skip


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)
