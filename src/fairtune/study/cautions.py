"""What is wrong with a study as a trial, as far as its plan can know: refused, warned about or noted before the first run.

Each rule is a function of the plan and says which arm a caution is about; `RULES` lists them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtune.core.cautions import Caution, gravest_first
from fairtune.core.errors import FairtuneError, one_of
from fairtune.core.numbers import as_percent, listed
from fairtune.settings.bands import find_band
from fairtune.settings.metrics import METRICS
from fairtune.settings.sections import Train
from fairtune.settings.tune import Range
from fairtune.study.controls import ArmSettings, arm_line, find_unmatched, setting_text
from fairtune.tasks.definitions import LANGUAGES
from fairtune.tasks.task import Split

if TYPE_CHECKING:
    from fairtune.study.plan import Plan

MOST_SHARED = 0.1
"""The share of test texts that may also select the checkpoint before the study is refused."""
LOWEST_CONFIDENCE = 0.8
LARGEST_MARGIN = 0.25
"""Of the metric."""
FEWEST_SEEDS = 3
"""With fewer, no difference of a plausible size gets a verdict."""
FULL_BUDGET = 0.5
"""The share of the training examples from which on a published figure is within reach."""
HIGHEST_RATE = 0.05
"""Weights are drawn with a standard deviation of about 0.02, and AdamW moves each by about the learning rate in a step."""
SAMPLE = 200
NOT_LATIN = 0.5
"""The share of letters outside the Latin script above which a sample of texts is taken to be in another."""
ENGLISH = re.compile(
    r"minilm|all-minilm-.+|minilm-l\d+-h384-uncased|bert-tiny|bert-mini|bert-small|bert-medium|bert_uncased_l-.+"
    r"|(distil)?bert-(base|large)-(un)?cased(-.+)?|(distil)?roberta-(base|large)|(distil)?gpt2(-medium|-large|-xl)?"
    r"|deberta-(v3-)?(xsmall|small|base|large|xlarge)|electra-(small|base|large)-(discriminator|generator)"
    r"|albert-(base|large|xlarge|xxlarge)-v\d|scibert_.+|mpnet-base|modernbert-(base|large)|pythia-.+"
)
"""Well-known checkpoints that were pretrained on English alone, by the last part of their names in lower case."""
QK, BPSOM, FREEZE = "orthogonal_qk", "bpsom", "freeze-pretrained"
Found = Iterator[tuple[str, Caution]]
"""Cautions, each with the arm that it is about; the name is empty where that is the whole study."""
refusal, warning, note = (partial(Caution, grade) for grade in ("refusal", "warning", "note"))


class RefusedPlan(FairtuneError):  # noqa: N818 - a plan that is refused, not an error of the program
    """A study whose results would be worthless."""

    def __init__(self, refusals: Iterable[Caution]) -> None:
        self.refusals = tuple(refusals)
        lines = [f"refused: {caution}" for caution in self.refusals]
        super().__init__("\n".join([*lines, "`--force` runs it all the same, and the report will say so."]))

    def as_json(self) -> list[dict[str, Any]]:
        return [caution.as_json() for caution in self.refusals]


def find_cautions(plan: Plan, force: bool) -> tuple[Caution, ...]:
    """Everything to know of a study before its first run, the gravest first; refusals that are not forced are raised."""
    joined: dict[Caution, list[str]] = {}
    for rule in RULES:
        for arm, caution in rule(plan):
            joined.setdefault(caution, []).append(arm)
    found = []
    for caution, names in joined.items():
        who = "all arms" if len(names) == len(plan.compared) > 1 else listed(names)
        found.append(replace(caution, seen=f"{who}: {caution.seen}") if names[0] else caution)
    refusals = [caution for caution in found if caution.grade == "refusal"]
    if refusals and not force:
        raise RefusedPlan(refusals)
    return gravest_first(replace(caution, forced=caution in refusals) for caution in found)


def _tuned(plan: Plan) -> dict[str, ArmSettings]:
    """The arms that are fine-tuned."""
    return {arm: own for arm, own in plan.compared.items() if not own.learner}


def _overlap(plan: Plan) -> Found:
    overlap = plan.overlap
    if not overlap.found:
        return
    do = "Give validation data of its own, or leave `validation` out: a part of the training data is then held out"
    if plan.data is not None and not overlap.every:
        do = "Set `dedupe: true`, which takes them out of the validation split, or give validation data of its own"
    shared = f"{overlap.found:,} of the {overlap.tested:,} test texts ({as_percent(overlap.share)})"
    seen = f"task '{plan.task.name}': {shared} are in the validation split too, up to case, punctuation and spacing"
    why = "checkpoints are selected on what is then reported, so the scores are those of the luckiest checkpoint"
    yield "", (refusal if overlap.share > MOST_SHARED else warning)("splits-overlap", seen, why, do)


def _verdicts(plan: Plan) -> Found:
    """Verdicts that anything would get."""
    compare, metric = plan.study.compare, METRICS[plan.task.metric]
    if compare.confidence < LOWEST_CONFIDENCE:
        seen = f"compare.confidence is {compare.confidence:g}"
        why = f"up to {as_percent(1 - compare.confidence)} of the methods that change nothing would be called better or worse"
        yield "", refusal("confidence-low", seen, why, f"Use 0.95, or at least {LOWEST_CONFIDENCE:g}")
    margin = compare.margin
    share = float(margin.removesuffix("%")) / 100 if isinstance(margin, str) else margin
    scaled = isinstance(margin, str) or metric.bounds[1] == 1  # a plain number of a loss has no scale
    if share is not None and scaled and share > LARGEST_MARGIN:
        seen = f"compare.margin is {margin if isinstance(margin, str) else f'{margin:g}'}"
        why = "an arm could lose most of what was learned and still be called not inferior"
        unit = "a plain number is in the metric's own unit, so that one point of accuracy is 0.01"
        do = f"State the largest loss that you would accept in use, such as `1%`; {unit}"
        yield "", refusal("margin-large", f"{seen}, more than a quarter of {metric.title}", why, do)


def _design(plan: Plan) -> Found:
    """Too few seeds, and an order that times cannot stand."""
    seeds = len(plan.study.seeds)
    if len(plan.study.arms) == 1:
        return
    if seeds < FEWEST_SEEDS:
        why = "one run gives no verdict at all, and two rarely tell even four points from luck"
        yield "", warning("few-seeds", f"seeds: {seeds} per arm", why, "Use `seeds: 5`; three are the least")
    if plan.study.order == "sequential":
        seen = "order: sequential runs one arm after the other"
        why = "arms that ran at different times are compared, so a busier hour or a warmer machine looks like a slower method"
        yield "", warning("order-sequential", seen, why, "Use `order: crossover`, the default")


def _reference(plan: Plan) -> Found:
    """A reference with methods."""
    reference = plan.reference
    acting = [use.name for use in plan.study.methods(reference) if not use.config.idle]
    if acting and len(_tuned(plan)) > 1:
        seen = f"{reference}, which the others are compared to, has methods itself ({one_of(acting)})"
        why = "it is not the untouched checkpoint, so a difference may be its loss as well as another arm's gain"
        do = "Compare to an arm without methods (`compare: {to: NAME}`), or keep it if this comparison is the question"
        yield "", (warning if reference.lower().startswith("baseline") else note)("reference-methods", seen, why, do)


def _no_control(plan: Plan) -> Found:
    for arm in find_unmatched(plan.compared, plan.controls, plan.reference):
        line, apart = plan.missing.get(arm), [found for found in plan.differences if found.arm == arm]
        do = "Add an arm without methods that has these settings"
        if line:
            do = f"Add the arm `{line}`, or let `--add-controls` (in the file `controls: true`) do it"
        seen = f"no arm without methods has the same settings, and {plan.reference} is not fine-tuned"
        why = "a difference from it is that of fine-tuning and method together"
        if apart:
            values = (f"{found.setting} is {found.ours}, not {found.theirs}" for found in apart)
            seen = f"{' and '.join(values)}, and no arm without methods has these settings"
            names = " and ".join(found.setting for found in apart)
            why = f"method and {names} cannot be told apart, so no verdict will be given"
        yield arm, warning("no-control", seen, why, do)


def _freezing(plan: Plan) -> Found:
    """New weights that are frozen, where no arm of the same settings freezes the ones that were there."""
    kept = "drawn" if plan.model.preset is not None else "pretrained"
    seen = f"Q and K get new weights and are frozen, and no arm of the same settings freezes the {kept} ones"
    why = "what freezing does and what the new weights do cannot be told apart"
    usual = {"layers": "all", "parts": ["q", "k"]}
    for arm, use, alike in _uses(plan, QK):
        config = use.config.model_dump(mode="json")
        parts = {name: config[name] for name in usual}
        only = {"init": "keep", "freeze": True, "ffn": False, **parts}
        frozen = any(only.items() <= other.config.model_dump(mode="json").items() for other in alike)
        if config["init"] != "keep" and config["freeze"] and config["parts"] and not frozen:
            given = {name: value for name, value in parts.items() if value != usual[name]}
            name = FREEZE if FREEZE not in plan.arms else f"{FREEZE}-for-{arm}"
            line = arm_line(name, plan.study.arms[arm], [{QK: {"init": "keep", **given}}])
            yield arm, warning("no-freezing-control", seen, why, f"Add the arm `{line}`")


def _observing(plan: Plan) -> Found:
    """Maps that act, where no other arm has the same head with a map that only watches."""
    seen = "BP-SOM has a head of its own, and no arm has that head with a map that only watches"
    why = "what the head does and what the map does cannot be told apart"
    for arm, use, alike in _uses(plan, BPSOM):
        if not use.config.idle and not any(other.config.control_for(use.config) for other in alike):
            hidden = use.config.model_dump(exclude_unset=True, include={"hidden"})
            observer = [{BPSOM: {**hidden, "alpha": 0, "prune": None}}]
            line = arm_line(f"{BPSOM}-observer", plan.study.arms[arm], observer)
            yield arm, warning("no-observer", seen, why, f"Add the arm `{line}`")


def _uses(plan: Plan, method: str) -> Iterator[tuple[str, Any, list[Any]]]:
    """Each arm's use of a method, with those of all arms that have the same settings."""
    tuned = _tuned(plan)
    for arm, own in tuned.items():
        alike = [use for one in tuned.values() if one.settings == own.settings for use in one.methods]
        for use in own.methods:
            if use.name == method:
                yield arm, use, [other for other in alike if other.name == method]


UNEQUAL = {
    "unequal-steps": (
        ("batch_size", "accumulate", "max_length", "precision"),
        "an optimizer step is not the same work in both, so their step times say nothing about the method",
        "Give both the same {}, or compare no times",
    ),
    "unequal-scoring": (
        ("eval_examples",),
        "they are selected and reported on different examples",
        "Set {} once, under `train`",
    ),
}
"""Settings that an arm and its partner should share, by code: their names, why, and what to do."""


def _unequal(plan: Plan) -> Found:
    for code, (settings, why, do) in UNEQUAL.items():
        arms = plan.compared if code == "unequal-scoring" else _tuned(plan)
        for arm, own in arms.items():
            other = plan.primaries[arm] or arm
            theirs = arms.get(other, own).settings
            names = [name for name in settings if own.settings[name] != theirs[name]]
            values = [(n, setting_text(n, own.settings[n]), setting_text(n, theirs[n])) for n in names]
            seen = "; ".join(f"{name} is {ours}, {other} has {its}" for name, ours, its in values)
            if names:
                yield arm, warning(code, seen, why, do.format(listed(names)))


def _training(plan: Plan) -> Found:
    """Schedules and rates with which runs, or their trials, learn next to nothing."""
    study, tune = plan.study, plan.study.tune
    for arm in (arm for arm in plan.compared if plan.steps(arm)):
        train = study.settings(arm)
        highest = train.lr
        if tune is not None and "lr" in tune.space:
            space = tune.space["lr"]
            highest = space.high if isinstance(space, Range) else max(map(float, space))
        found = list(setting_cautions(train, plan.steps(arm), highest))
        if tune is not None and tune.cheaper and study.pairs(arm) is None:
            cheaper = Train.model_validate({**train.model_dump(), **tune.cheaper})
            tried = setting_cautions(cheaper, cheaper.total_steps(plan.examples[arm]), highest)
            found += [replace(caution, seen=f"in trials, {caution.seen}") for caution in tried if caution not in found]
        chosen = "warmup-long" if tune is not None and "warmup" in tune.space else ""  # by each trial for itself
        yield from ((arm, caution) for caution in found if caution.code != chosen)


def _language(plan: Plan) -> Found:
    if plan.data is None:
        return
    splits = [plan.data.splits[name] for name in ("test", "train")]
    models = (model for arm, model in plan.models.items() if plan.study.uses_model(arm))
    for name in dict.fromkeys(model.hub_id or model.name for model in models):
        if caution := language_caution(plan.task.name, splits, name):
            yield "", caution


def _small_budget(plan: Plan) -> Found:
    """A published figure that this budget cannot reach: a baseline below it is then no sign of a mistake."""
    study, task, model, reference = plan.study, plan.task, plan.model, plan.reference
    band = find_band(model.hub_id or model.name, task.name, task.metric)
    if band is None or study.train_on is not None or study.learner(reference) is not None:
        return
    train, rows, used = study.settings(reference), plan.examples[reference], plan.used(reference)
    passes = train.total_steps(used) / train.steps_per_epoch(used)
    if used >= FULL_BUDGET * rows and passes >= 1:
        return
    seen = f"{used:,} of {rows:,} training examples" if used < FULL_BUDGET * rows else f"{passes:.2g} of an epoch"
    why = f"the published {band} was reached with all of them, so a lower score says nothing against this baseline"
    do = "Compare the arms with each other, not with published figures; or train on everything for at least one epoch"
    yield "", note("small-budget", f"{reference} trains on {seen}", why, do)


def setting_cautions(train: Train, steps: int, highest: float) -> Iterator[Caution]:
    """What a run's schedule and its rate, or the highest that trials may choose, let it learn in so many optimizer steps."""
    warmup = train.warmup_steps(steps)
    if train.warmup >= 1 and warmup >= steps:
        seen = f"warmup is {warmup:,} steps and training has {steps:,}"
        share = as_percent((steps - 1) / warmup)
        why = f"the learning rate is still rising when training ends, at {share} of the rate that is set"
        yield warning("warmup-long", seen, why, "Set `warmup: 0.1`, a tenth of the steps")
    if highest > HIGHEST_RATE:
        seen = f"the learning rate is {highest:.2g} at its peak, above {HIGHEST_RATE:g}"
        why = "AdamW moves each weight by about that much in a step, which is more than most weights are, so training diverges"
        do = "Rates of fine-tuning are 1e-5 to 1e-3; check for a lost exponent, as in 3 for 3e-5"
        yield warning("rate-high", seen, why, do)


def language_caution(task: str, splits: Iterable[Split], model: str) -> Caution | None:
    """A warning where a model certainly does not know the language of the texts, by their letters or the name of the task."""
    if not ENGLISH.fullmatch(model.partition("@")[0].rpartition("/")[2].lower()):
        return None
    family, language, *_ = [*task.split("/"), ""]
    named = family == "xnli" and language in LANGUAGES and language != "en"
    if not named and not any(map(_is_foreign, splits)):
        return None
    texts = f"the texts of {task} are not in English" if named else f"most letters of {task} are not Latin"
    why = "a model that cannot read the texts learns little from them, and its scores say little about the method"
    many = "google-bert/bert-base-multilingual-cased or FacebookAI/xlm-roberta-base"
    do = f"Use a multilingual model, such as {many}, or texts in the model's language"
    return warning("language-unknown", f"{texts}, and {model} was pretrained on English alone", why, do)


def _is_foreign(split: Split) -> bool:
    """Whether most letters are outside the Latin script, in a sample of the texts."""
    rows = np.unique(np.linspace(0, len(split) - 1, min(SAMPLE, len(split))).astype(np.int64))
    letters = [ord(sign) for parts in split.take(rows).texts for part in parts for sign in part if sign.isalpha()]
    return sum(sign > 0x24F and not 0x1E00 <= sign <= 0x1EFF for sign in letters) > NOT_LATIN * len(letters)


RULES: tuple[Callable[[Plan], Found], ...] = (
    _overlap,
    _verdicts,
    _design,
    _reference,
    _no_control,
    _freezing,
    _observing,
    _unequal,
    _training,
    _language,
    _small_budget,
)
