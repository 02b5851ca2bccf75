"""What is wrong with a study as a trial, as far as its plan can know: refused, warned about or noted before the first run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fairtune.core.cautions import Caution, gravest_first
from fairtune.core.errors import FairtuneError
from fairtune.core.numbers import as_percent
from fairtune.settings.bands import find_band
from fairtune.settings.metrics import METRICS
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.study.arm_cautions import find_arm_cautions
from fairtune.study.audit import ArmSettings
from fairtune.study.inputs import PlanInputs
from fairtune.study.schema import Study

MOST_SHARED = 0.1
"""Of the test texts, how many may also select the checkpoint before the study is refused."""
LOWEST_CONFIDENCE = 0.8
LARGEST_MARGIN = 0.25
"""Of the metric: a loss of more than a quarter matters to everybody."""
FEWEST_SEEDS = 3
"""With fewer, no difference of a plausible size gets a verdict."""
FULL_BUDGET = 0.5
"""The share of the training examples from which on a published figure is within reach."""


class RefusedPlan(FairtuneError):  # noqa: N818 - a plan that is refused, not an error of the program
    """A study whose results would be worthless."""

    def __init__(self, refusals: Iterable[Caution]) -> None:
        self.refusals = tuple(refusals)
        lines = [f"refused: {caution}" for caution in self.refusals]
        super().__init__("\n".join([*lines, "`--force` runs it all the same, and the report will say so."]))

    def as_json(self) -> list[dict[str, Any]]:
        return [caution.as_json() for caution in self.refusals]


def require_allowed(found: Iterable[Caution], force: bool) -> tuple[Caution, ...]:
    """The cautions of a plan; its refusals are marked as overruled.

    Raises:
        RefusedPlan: there are refusals, and nobody insists.
    """
    cautions = gravest_first(found)
    refusals = [caution for caution in cautions if caution.grade == "refusal"]
    if refusals and not force:
        raise RefusedPlan(refusals)
    return tuple(replace(caution, forced=True) if caution in refusals else caution for caution in cautions)


def find_cautions(
    inputs: PlanInputs,
    arms: Mapping[str, ArmSettings],
    primaries: Mapping[str, str | None],
    missing: Mapping[str, str],
    copy: str | None = None,
) -> tuple[Caution, ...]:
    """Everything to be told of a study before its first run, the gravest first.

    Args:
        primaries: of each arm, the arm that it is compared with.
        missing: of arms without a control, the line of a study file that would add one.
        copy: the arm that is the reference once more, which is not compared for its own sake.
    """
    study = inputs.study
    return gravest_first(
        [
            *_splits(inputs),
            *_verdicts(study, inputs.task.metric),
            *_seeds(study),
            *_order(study),
            *find_arm_cautions(inputs, arms, primaries, missing, copy),
            *_budget(inputs),
        ]
    )


def _splits(inputs: PlanInputs) -> Iterator[Caution]:
    overlap = inputs.overlap
    if not overlap.found:
        return
    what = "documents" if inputs.task.kind == LANGUAGE_MODEL else "texts"
    other = "give validation data of its own"
    if inputs.task.kind == LANGUAGE_MODEL:
        do = f"{other[0].upper()}{other[1:]}, or leave `validation` out: a part of the training text is then held out"
    elif overlap.every_validation:
        do = f"{other[0].upper()}{other[1:]}, or leave `validation` out: a part of the training examples is then held out"
    else:
        do = f"Set `dedupe: true`, which takes them out of the validation split, or {other}"
    yield Caution(
        "refusal" if overlap.share > MOST_SHARED else "warning",
        "splits-overlap",
        f"task '{inputs.task.name}': {overlap.found:,} of the {overlap.tested:,} test {what} ({as_percent(overlap.share)}) are in "
        "the validation split too, up to case, punctuation and spacing",
        "checkpoints are selected on what is then reported, so the scores are those of the luckiest checkpoint",
        do,
    )


def _verdicts(study: Study, metric: str) -> Iterator[Caution]:
    confidence, margin = study.compare.confidence, study.compare.margin
    if confidence < LOWEST_CONFIDENCE:
        yield Caution(
            "refusal",
            "confidence-low",
            f"compare.confidence is {confidence:g}",
            f"up to {as_percent(1 - confidence)} of the methods that change nothing would be called better or worse",
            f"Use 0.95, or at least {LOWEST_CONFIDENCE:g}",
        )
    share = _margin_share(margin, metric)
    if share is not None and share > LARGEST_MARGIN:
        yield Caution(
            "refusal",
            "margin-large",
            f"compare.margin is {margin if isinstance(margin, str) else f'{margin:g}'}, more than a quarter of "
            f"{METRICS[metric].title}",
            "an arm could lose most of what was learned and still be called not inferior",
            "State the largest loss that you would accept in use, such as `1%`; a plain number is in the metric's own unit, so "
            "that one point of accuracy is 0.01",
        )


def _margin_share(margin: float | str | None, metric: str) -> float | None:
    """A margin as a share of the metric; None where a plain number has no scale to be measured by."""
    if isinstance(margin, str):
        return float(margin.removesuffix("%")) / 100
    return margin if margin is not None and METRICS[metric].bounds[1] == 1 else None


def _seeds(study: Study) -> Iterator[Caution]:
    count = len(study.seeds)
    if count < FEWEST_SEEDS and len(study.arms) > 1:
        yield Caution(
            "warning",
            "few-seeds",
            f"seeds: {'one seed' if count == 1 else 'two seeds'} per arm",
            "one run gives no verdict at all, since how much luck a seed brings is not known"
            if count == 1
            else "two seeds settle nothing: even differences of four points are rarely told from luck",
            "Use `seeds: 5`; three are the least",
        )


def _order(study: Study) -> Iterator[Caution]:
    if study.order == "sequential" and len(study.arms) > 1:
        yield Caution(
            "warning",
            "order-sequential",
            "order: sequential runs one arm after the other",
            "their times are compared although they ran at different times, so a busier hour or a warmer machine looks like a "
            "slower method",
            "Use `order: crossover`, the default",
        )


def _budget(inputs: PlanInputs) -> Iterator[Caution]:
    """A published figure that this budget cannot reach: a baseline below it is then no sign of a mistake."""
    study, task, model = inputs.study, inputs.task, inputs.model
    band = find_band(model.hub_id or model.name, task.name, task.metric)
    reference = study.compare.to
    if band is None or study.train_on is not None or study.learner(reference) is not None:
        return
    train, rows = study.settings(reference), inputs.examples[reference]
    used = inputs.used(reference)
    passes = train.total_steps(used) / train.steps_per_epoch(used)
    if used >= FULL_BUDGET * rows and passes >= 1:
        return
    seen = f"{used:,} of {rows:,} training examples" if used < FULL_BUDGET * rows else f"{passes:.2g} of an epoch"
    yield Caution(
        "note",
        "small-budget",
        f"{reference} trains on {seen}",
        f"the published {band} was reached with all of them, so a lower score says nothing against this baseline",
        "Compare the arms with each other, not with published figures; or train on everything for at least one epoch",
    )
