"""What is wrong with a study as a trial, as far as its plan can know: refused, warned about or noted before the first run.

Each rule is a function of the same `Facts`; `RULES` lists them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairtune.core.cautions import Caution, gravest_first
from fairtune.core.errors import FairtuneError, one_of
from fairtune.core.numbers import as_percent, listed
from fairtune.models.tokenizers import tokenizer_folder
from fairtune.settings.bands import find_band
from fairtune.settings.metrics import METRICS
from fairtune.settings.sections import ARITHMETIC, Train
from fairtune.settings.tune import Range
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.study.added_arms import arm_line
from fairtune.study.audit import ArmSettings, find_unmatched, setting_text
from fairtune.study.expand import FullStudy
from fairtune.study.training_cautions import (
    is_far_above,
    language_caution,
    length_caution,
    most_words,
    setting_cautions,
)
from fairtune.tasks.card.lengths import heldout_counts, train_counts
from fairtune.tasks.tokens.tokenization import TokenizerFolder

MOST_SHARED = 0.1
"""The share of test texts that may also select the checkpoint before the study is refused."""
LOWEST_CONFIDENCE = 0.8
LARGEST_MARGIN = 0.25
"""Of the metric."""
FEWEST_SEEDS = 3
"""With fewer, no difference of a plausible size gets a verdict."""
FULL_BUDGET = 0.5
"""The share of the training examples from which on a published figure is within reach."""
QK, BPSOM, FREEZE = "orthogonal_qk", "bpsom", "freeze-pretrained"
Arms = Mapping[str, ArmSettings]
refusal, warning, note = (partial(Caution, grade) for grade in ("refusal", "warning", "note"))


class RefusedPlan(FairtuneError):  # noqa: N818 - a plan that is refused, not an error of the program
    """A study whose results would be worthless."""

    def __init__(self, refusals: Iterable[Caution]) -> None:
        self.refusals = tuple(refusals)
        lines = [f"refused: {caution}" for caution in self.refusals]
        super().__init__("\n".join([*lines, "`--force` runs it all the same, and the report will say so."]))

    def as_json(self) -> list[dict[str, Any]]:
        return [caution.as_json() for caution in self.refusals]


@dataclass(frozen=True)
class Facts:
    """What the rules look at.

    Args:
        arms: all but a copy of the reference, which is not compared for its own sake.
        tuned: those of them that are fine-tuned.
        primaries: the arm that each is compared with.
    """

    full: FullStudy
    arms: Arms
    tuned: Arms
    primaries: Mapping[str, str | None]

    @property
    def reference(self) -> str:
        return self.full.study.compare.to


def find_cautions(full: FullStudy, arms: Arms, primaries: Mapping[str, str | None], force: bool) -> tuple[Caution, ...]:
    """Everything to know of a study before its first run, the gravest first; refusals that are forced say so.

    Args:
        arms: those that are compared.
        primaries: the arm that each is compared with.

    Raises:
        RefusedPlan: its results would be worthless, and it is not forced.
    """
    own = {arm: found for arm, found in arms.items() if arm != full.copy}
    facts = Facts(full, own, {arm: found for arm, found in own.items() if not found.learner}, primaries)
    found = gravest_first(caution for rule in RULES for caution in rule(facts))
    refusals = [caution for caution in found if caution.grade == "refusal"]
    if refusals and not force:
        raise RefusedPlan(refusals)
    return tuple(replace(caution, forced=True) if caution in refusals else caution for caution in found)


def _overlap(facts: Facts) -> Iterator[Caution]:
    overlap, task = facts.full.overlap, facts.full.task
    if not overlap.found:
        return
    text = task.kind == LANGUAGE_MODEL
    part = "training text" if text else "training examples"
    do = "Set `dedupe: true`, which takes them out of the validation split, or give validation data of its own"
    if text or overlap.every_validation:
        do = f"Give validation data of its own, or leave `validation` out: a part of the {part} is then held out"
    yield (refusal if overlap.share > MOST_SHARED else warning)(
        "splits-overlap",
        f"task '{task.name}': {overlap.found:,} of the {overlap.tested:,} test {'documents' if text else 'texts'} "
        f"({as_percent(overlap.share)}) are in the validation split too, up to case, punctuation and spacing",
        "checkpoints are selected on what is then reported, so the scores are those of the luckiest checkpoint",
        do,
    )


def _design(facts: Facts) -> Iterator[Caution]:
    """Verdicts that anything would get, too few seeds, and an order that times cannot stand."""
    study, metric = facts.full.study, METRICS[facts.full.task.metric]
    confidence, margin = study.compare.confidence, study.compare.margin
    if confidence < LOWEST_CONFIDENCE:
        seen = f"compare.confidence is {confidence:g}"
        why = f"up to {as_percent(1 - confidence)} of the methods that change nothing would be called better or worse"
        do = f"Use 0.95, or at least {LOWEST_CONFIDENCE:g}"
        yield refusal("confidence-low", seen, why, do)
    share = float(margin.removesuffix("%")) / 100 if isinstance(margin, str) else margin
    scaled = isinstance(margin, str) or metric.bounds[1] == 1  # a plain number of a loss has no scale
    if share is not None and scaled and share > LARGEST_MARGIN:
        yield refusal(
            "margin-large",
            f"compare.margin is {margin if isinstance(margin, str) else f'{margin:g}'}, more than a quarter of {metric.title}",
            "an arm could lose most of what was learned and still be called not inferior",
            "State the largest loss that you would accept in use, such as `1%`; a plain number is in the metric's own unit, so "
            "that one point of accuracy is 0.01",
        )
    if len(study.arms) > 1 and len(study.seeds) < FEWEST_SEEDS:
        seeds, why = (
            ("one seed", "one run gives no verdict at all, since how much luck a seed brings is not known")
            if len(study.seeds) == 1
            else (
                "two seeds",
                "two seeds settle nothing: even differences of four points are rarely told from luck",
            )
        )
        yield warning("few-seeds", f"seeds: {seeds} per arm", why, "Use `seeds: 5`; three are the least")
    if len(study.arms) > 1 and study.order == "sequential":
        yield warning(
            "order-sequential",
            "order: sequential runs one arm after the other",
            "their times are compared although they ran at different times, so a busier hour or a warmer machine looks like a "
            "slower method",
            "Use `order: crossover`, the default",
        )


def _reference(facts: Facts) -> Iterator[Caution]:
    """A reference with methods, and one whose settings no other arm has."""
    reference = facts.reference
    if reference not in facts.tuned or len(facts.tuned) < 2:
        return
    base, others = facts.tuned[reference], [own for arm, own in facts.tuned.items() if arm != reference]
    acting = [use.name for use in base.methods if not use.config.idle]
    if acting:
        seen = f"{reference}, which the others are compared to, has methods itself ({one_of(acting)})"
        why = "it is not the untouched checkpoint, so a difference may be its loss as well as another arm's gain"
        do = "Compare to an arm without methods (`compare: {to: NAME}`), or keep it if this comparison is the question"
        yield (warning if reference.lower().startswith("baseline") else note)("reference-methods", seen, why, do)
    if not any(own.methods for own in others) or any(own.settings == base.settings for own in others):
        return  # arms without methods are meant to compare settings
    shared = {
        arm: sum(other.settings == own.settings for other in others)
        for arm, own in facts.tuned.items()
        if arm != reference and not own.methods
    }
    best = max(shared, key=lambda arm: shared[arm], default=None)
    names = [name for name, value in base.settings.items() if any(own.settings[name] != value for own in others)]
    alone = one_of(f"{name} {setting_text(name, base.settings[name])}" for name in names)
    yield warning(
        "reference-alone",
        f"no other arm has the settings of {reference} ({alone})",
        "every difference from it is one of settings too, and cannot be put down to a method",
        f"`compare: {{to: {best}}}` compares at equal settings; else read each arm beside its control"
        if best is not None and shared[best] > 1
        else f"Give an arm the settings of {reference}, or compare to an arm without methods that has the others' settings",
    )


def _no_control(facts: Facts) -> Iterator[Caution]:
    reference, base = facts.reference, facts.arms[facts.reference]
    unmatched = [(facts.full.missing.get(arm, ""), arm) for arm in find_unmatched(facts.arms, reference)]
    for line, found in _grouped(unmatched).items():
        add = f"Add the arm `{line}`, or let `--add-controls` (in the file `controls: true`) do it"
        if base.learner:
            seen = f"no arm without methods has the same settings, and {reference} is not fine-tuned"
            why = "a difference from it is that of fine-tuning and method together"
        else:
            own = facts.arms[found[0]].settings
            changed = [name for name in own if own[name] != base.settings[name]]
            values = [(n, setting_text(n, own[n]), setting_text(n, base.settings[n])) for n in changed]
            seen = " and ".join(f"{name} is {ours}, not {theirs}" for name, ours, theirs in values)
            seen += ", and no arm without methods has these settings"
            why = f"method and {' and '.join(changed)} cannot be told apart, so no verdict will be given"
            add = add if line else "Add an arm without methods that has these settings"
        yield warning("no-control", f"{listed(found)}: {seen}", why, add)


def _lacking(facts: Facts) -> Iterator[Caution]:
    """New weights that are frozen, and maps that act, where no other arm has the one without the other."""
    lacking, study = [], facts.full.study
    kept = "drawn" if facts.full.model.preset is not None else "pretrained"
    freezing = f"Q and K get new weights and are frozen, and no arm of the same settings freezes the {kept} ones"
    observing = "BP-SOM has a head of its own, and no arm has that head with a map that only watches"
    for arm, own in facts.tuned.items():
        alike = [use for one in facts.tuned.values() if one.settings == own.settings for use in one.methods]
        frozen = [use.config.model_dump(mode="json") for use in alike if use.name == QK]
        for use in own.methods:
            if use.name == QK:
                config = use.config.model_dump(mode="json")
                parts = {key: config[key] for key in ("layers", "parts")}
                only = {"init": "keep", "freeze": True, "ffn": False, **parts}
                acts = config["init"] != "keep" and config["freeze"] and config["parts"]
                if acts and not any(only.items() <= found.items() for found in frozen):
                    usual = {"layers": "all", "parts": ["q", "k"]}
                    given = {key: value for key, value in parts.items() if value != usual[key]}
                    name = FREEZE if FREEZE not in facts.tuned else f"{FREEZE}-for-{arm}"
                    line = arm_line(study, arm, name, [{QK: {"init": "keep", **given}}])
                    both = "freezing does and what the new weights do"
                    lacking.append((("no-freezing-control", freezing, both, line), arm))
            watched = use.name == BPSOM and any(one.config.control_for(use.config) for one in alike)
            if use.name == BPSOM and not use.config.idle and not watched:
                hidden = use.config.model_dump(exclude_unset=True, include={"hidden"})
                line = arm_line(study, arm, f"{BPSOM}-observer", [{BPSOM: {**hidden, "alpha": 0, "prune": None}}])
                lacking.append((("no-observer", observing, "the head does and what the map does", line), arm))
    for (code, seen, both, line), found in sorted(_grouped(lacking).items(), key=lambda one: one[0][0]):
        why = f"what {both} cannot be told apart"
        yield warning(code, f"{listed(found)}: {seen}", why, f"Add the arm `{line}`")


UNEQUAL = (
    (
        "unequal-steps",
        ("batch_size", "accumulate", "max_length", "precision"),
        " and ",
        "an optimizer step is not the same work in both, so their step times say nothing about the method",
        "Give both the same {}, or compare no times",
    ),
    (
        "unequal-scoring",
        ("eval_examples",),
        " and ",
        "they are selected and reported on different examples",
        "Set eval_examples once, under `train`",
    ),
    (
        "unequal-arithmetic",
        ARITHMETIC,
        ", ",
        "they train alike but for the last bits, but time and memory are then those of this as much as of the method",
        "Give both the same {}, or compare neither times nor memory",
    ),
)
"""Settings that an arm and its partner should share: the code, their names, what joins them, why, and what to do."""


def _unequal(facts: Facts) -> Iterator[Caution]:
    for code, settings, joint, why, do in UNEQUAL:
        arms = facts.arms if code == "unequal-scoring" else facts.tuned
        for arm, own in arms.items():
            other = facts.primaries[arm]
            if other is None or other not in arms:
                continue
            theirs = arms[other].settings
            names = [name for name in settings if own.settings[name] != theirs[name]]
            values = [f"{n} {setting_text(n, own.settings[n])} and {setting_text(n, theirs[n])}" for n in names]
            if names:
                yield warning(code, f"{arm} and {other}: {joint.join(values)}", why, do.format(" and ".join(names)))


def _arms(facts: Facts) -> Iterator[Caution]:
    """Arms of the same runs, and choices that all or some arms make."""
    for group in _alike(facts.arms):
        if len(group) > 1:
            seen = f"{listed(group)} have the same settings and methods"
            why = "with the same seeds they train to the same bits, which shows nothing about the luck of seeds"
            do = "Keep one, and set `aa: true` for a copy of the reference with other random numbers"
            yield note("same-runs", seen, why, do)
    attention = {own.settings["attention"] for own in facts.tuned.values()}
    if facts.full.task.kind != LANGUAGE_MODEL and attention == {"bidirectional"}:
        seen = "attention is bidirectional in all arms"
        why = "that is not a language model's attention, so nothing here shows how a causal model classifies"
        do = "Leave `attention` out for causal arms, or have arms of both kinds"
        yield note("bidirectional", seen, why, do)
    tune = facts.full.study.tune
    acting = {arm: [use.name for use in own.methods if not use.config.idle] for arm, own in facts.tuned.items()}
    own_fields = [(tuple(tune.own(methods)), arm) for arm, methods in acting.items()] if tune is not None else []
    for names, arms in _grouped(own_fields).items():
        if names:
            yield note(
                "extra-tuning",
                f"{listed(arms)}: {listed(names)} {'is' if len(names) == 1 else 'are'} tuned too, which arms without the method "
                "do not have",
                "they choose among more settings than the others, and part of a gain may come from that choice",
                "Report it as extra tuning, or take it out of the space",
            )
    if loose := [arm for arm, own in facts.tuned.items() if own.settings["deterministic"] is False]:
        seen = f"deterministic is false in {one_of(loose)}"
        why = "on a GPU the same seed may then give other last bits each time, also when a run was stopped and goes on"
        do = "Leave it out where runs must be repeated to the bit"
        yield note("not-deterministic", seen, why, do)


def _training(facts: Facts) -> Iterator[Caution]:
    """Schedules and rates with which runs, or their trials, learn next to nothing."""
    full, found = facts.full, []
    study, tune = full.study, full.study.tune
    for arm in (arm for arm in facts.arms if full.steps(arm)):
        train, methods = study.settings(arm), study.methods(arm)
        rates: tuple[float, ...] = (train.lr,)
        if tune is not None and "lr" in tune.space:
            space = tune.space["lr"]
            values = (space.low, space.high) if isinstance(space, Range) else tuple(map(float, space))
            rates = (min(values), max(values))
        own = [("", caution) for caution in setting_cautions(train, methods, full.steps(arm), rates)]
        if tune is not None and tune.cheaper and study.pairs(arm) is None:
            cheaper = Train.model_validate({**train.model_dump(), **tune.cheaper})
            tried = setting_cautions(cheaper, methods, cheaper.total_steps(full.examples[arm]), rates)
            own += [("trials of ", caution) for caution in tried if ("", caution) not in own]
        found += [(seen, arm) for seen in own]
    for (runs, caution), names in _grouped(found).items():
        if caution.code == "warmup-long" and tune is not None and "warmup" in tune.shared:
            continue  # every trial sets it for itself
        who = "all arms" if len(names) == len(facts.arms) > 1 else listed(names)
        yield replace(caution, seen=f"{runs}{who}: {caution.seen}")


def _texts(facts: Facts) -> Iterator[Caution]:
    """Models that cannot read the texts, and lengths that cut none of them, model by model."""
    full = facts.full
    if full.data is None:
        return
    using = [(full.models[arm].identity, arm) for arm in facts.arms if full.study.uses_model(arm)]
    for found in _grouped(using).values():
        model = full.models[found[0]]
        folder = full.tokenizer.folder if full.tokenizer else model.folder
        words = None if folder is None else tokenizer_folder(Path(folder))
        splits = [full.data.splits[name] for name in ("test", "train")]
        load = None if words is None else words.load
        if caution := language_caution(full.task.name, splits, model.hub_id or model.name, load):
            yield caution
        if words is not None:
            yield from _lengths(full, {arm: facts.arms[arm] for arm in found}, words)


def _lengths(full: FullStudy, arms: Arms, words: TokenizerFolder) -> Iterator[Caution]:
    """Tokens are counted only where there is a question: counting takes seconds, once for each tokenizer."""
    data, settings = full.data, {arm: full.study.settings(arm) for arm in arms}
    assert data is not None, "a task that classifies"
    lengths = {arm: train.longest for arm, train in settings.items()}
    alike = [group for group in _alike(arms, "max_length") if len({lengths[arm] for arm in group}) > 1]
    least = most_words(data.splits["train"])  # a word has at least one token
    given = {lengths[arm] for arm, train in settings.items() if "max_length" in train.model_fields_set}
    far = sorted(length for length in given if is_far_above(length, least))
    if not far and not any(sorted(lengths[arm] for arm in group)[-2] >= least for group in alike):
        return
    counts = [train_counts(data, words), heldout_counts(data, words)]
    longest, n = max(one.longest for one in counts), sum(one.n for one in counts)
    counted = f"{n:,} {'sampled ' if any(one.sampled for one in counts) else ''}texts"
    notes = [length_caution(length, longest, counted) for length in far]
    yield from [found for found in notes if found is not None][:1]
    for group in alike:
        whole = [arm for arm in group if lengths[arm] >= longest]
        if len({lengths[arm] for arm in whole}) > 1:
            values = listed([f"{lengths[arm]}" for arm in whole])
            seen = f"{listed(whole)}: max_length {values}, and the longest of {counted} has {longest} tokens"
            why = "they differ in nothing else and cut none of these texts, so they are the same runs twice"
            do = f"Compare lengths below {longest}, or keep one of them"
            yield warning("same-lengths", seen, why, do)


def _small_budget(facts: Facts) -> Iterator[Caution]:
    """A published figure that this budget cannot reach: a baseline below it is then no sign of a mistake."""
    full, reference = facts.full, facts.reference
    study, task, model = full.study, full.task, full.model
    band = find_band(model.hub_id or model.name, task.name, task.metric)
    if band is None or study.train_on is not None or study.learner(reference) is not None:
        return
    train, rows, used = study.settings(reference), full.examples[reference], full.used(reference)
    passes = train.total_steps(used) / train.steps_per_epoch(used)
    if used >= FULL_BUDGET * rows and passes >= 1:
        return
    seen = f"{used:,} of {rows:,} training examples" if used < FULL_BUDGET * rows else f"{passes:.2g} of an epoch"
    seen = f"{reference} trains on {seen}"
    why = f"the published {band} was reached with all of them, so a lower score says nothing against this baseline"
    do = "Compare the arms with each other, not with published figures; or train on everything for at least one epoch"
    yield note("small-budget", seen, why, do)


RULES: tuple[Callable[[Facts], Iterator[Caution]], ...]
RULES = (_overlap, _design, _reference, _no_control, _lacking, _unequal, _arms, _training, _texts, _small_budget)


def _alike(arms: Arms, *but: str) -> list[list[str]]:
    """Arms in groups that differ in nothing, or in these settings alone."""
    keys = []
    for arm, own in arms.items():
        settings = {name: value for name, value in own.settings.items() if name not in but}
        key = [settings, [use.as_json() for use in own.methods], own.learner]
        keys.append((json.dumps(key, sort_keys=True, default=str), arm))
    return list(_grouped(keys).values())


def _grouped(found: Iterable[tuple[Any, str]]) -> dict[Any, list[str]]:
    """Arms by what they have in common."""
    groups: dict[Any, list[str]] = {}
    for key, arm in found:
        groups.setdefault(key, []).append(arm)
    return groups
