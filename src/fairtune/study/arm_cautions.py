"""Cautions about the arms of a study: comparisons that mix two causes, and controls that are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtune.core.cautions import Caution
from fairtune.core.errors import one_of
from fairtune.methods.config import MethodUse
from fairtune.models.tokenizers import tokenizer_folder
from fairtune.settings.sections import Train
from fairtune.settings.tune import lowest
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.study.added_arms import arm_line
from fairtune.study.arithmetic import arithmetic_cautions
from fairtune.study.audit import ArmSettings, find_unmatched, setting_text
from fairtune.study.inputs import PlanInputs
from fairtune.study.training_cautions import (
    is_far_above,
    language_caution,
    length_caution,
    most_words,
    setting_cautions,
)
from fairtune.tasks.card.lengths import heldout_counts, train_counts
from fairtune.tasks.tokens.tokenization import TokenizerFolder

STEP = ("batch_size", "accumulate", "max_length", "precision")
"""Settings that decide how much work an optimizer step is."""
FREEZE = "freeze-pretrained"
QK, BPSOM = "orthogonal_qk", "bpsom"
Arms = Mapping[str, ArmSettings]


def find_arm_cautions(
    inputs: PlanInputs, arms: Arms, primaries: Mapping[str, str | None], missing: Mapping[str, str], copy: str | None
) -> list[Caution]:
    """See `find_cautions`, which has more of them."""
    reference, own = inputs.study.compare.to, {arm: found for arm, found in arms.items() if arm != copy}
    tuned = {arm: found for arm, found in own.items() if not found.learner}
    beside = (
        [] if reference not in tuned else [*_reference_methods(tuned, reference), *_reference_alone(tuned, reference)]
    )
    return [
        *beside,
        *_no_control(own, reference, missing),
        *_no_freezing(inputs, tuned),
        *_no_observer(inputs, tuned),
        *_steps(tuned, primaries),
        *_scored(own, primaries),
        *_same_runs(own),
        *_bidirectional(inputs, tuned),
        *_extra_tuning(inputs, tuned),
        *arithmetic_cautions(tuned, primaries),
        *_training(inputs, own),
        *_texts(inputs, own),
    ]


def _reference_methods(arms: Arms, reference: str) -> Iterator[Caution]:
    acting = [use.name for use in arms[reference].methods if not use.config.idle]
    if acting and len(arms) > 1:
        called = reference.lower().startswith("baseline")
        yield Caution(
            "warning" if called else "note",
            "reference-methods",
            f"{reference}, which the others are compared to, has methods itself ({one_of(acting)})",
            "it is not the untouched checkpoint, so a difference may be its loss as well as another arm's gain",
            "Compare to an arm without methods (`compare: {to: NAME}`), or keep it if this comparison is the question",
        )


def _reference_alone(arms: Arms, reference: str) -> Iterator[Caution]:
    base, others = arms[reference].settings, {arm: own for arm, own in arms.items() if arm != reference}
    if not any(own.methods for own in others.values()) or any(own.settings == base for own in others.values()):
        return  # arms without methods are meant to compare settings
    shared = {
        arm: sum(other.settings == own.settings for other in others.values())
        for arm, own in others.items()
        if not own.methods
    }
    best = max(shared, key=lambda arm: shared[arm], default=None)
    do = (
        f"`compare: {{to: {best}}}` compares at equal settings; else read each arm beside its control"
        if best is not None and shared[best] > 1
        else f"Give an arm the settings of {reference}, or compare to an arm without methods that has the others' settings"
    )
    yield Caution(
        "warning",
        "reference-alone",
        f"no other arm has the settings of {reference} ({_differing(arms, others, reference)})",
        "every difference from it is one of settings too, and cannot be put down to a method",
        do,
    )


def _differing(arms: Arms, others: Arms, reference: str) -> str:
    """The settings of the reference that others do not have."""
    base = arms[reference].settings
    names = [name for name in base if any(own.settings[name] != base[name] for own in others.values())]
    return one_of(f"{name} {setting_text(name, base[name])}" for name in names)


def _no_control(arms: Arms, reference: str, missing: Mapping[str, str]) -> Iterator[Caution]:
    groups: dict[str, list[str]] = {}
    for arm in find_unmatched(arms, reference):
        groups.setdefault(missing.get(arm, ""), []).append(arm)
    base = arms[reference].settings
    for line, found in groups.items():
        if arms[reference].learner:
            yield _no_plain_arm(found, reference, line)
            continue
        changed = {name: value for name, value in arms[found[0]].settings.items() if value != base[name]}
        texts = [
            f"{name} is {setting_text(name, value)}, not {setting_text(name, base[name])}"
            for name, value in changed.items()
        ]
        add = f"Add the arm `{line}`, or let `--add-controls` (in the file `controls: true`) do it" if line else ""
        yield Caution(
            "warning",
            "no-control",
            f"{_listed(found)}: {' and '.join(texts)}, and no arm without methods has these settings",
            f"method and {' and '.join(changed)} cannot be told apart, so no verdict will be given",
            add or "Add an arm without methods that has these settings",
        )


def _no_plain_arm(arms: Sequence[str], reference: str, line: str) -> Caution:
    """The reference is a simple baseline, and nothing tells what methods do beside fine-tuning."""
    return Caution(
        "warning",
        "no-control",
        f"{_listed(arms)}: no arm without methods has the same settings, and {reference} is not fine-tuned",
        "a difference from it is that of fine-tuning and method together",
        f"Add the arm `{line}`, or let `--add-controls` (in the file `controls: true`) do it",
    )


def _no_freezing(inputs: PlanInputs, arms: Arms) -> Iterator[Caution]:
    """Q and K that are made anew and frozen, and nothing that is only frozen."""
    lacking: dict[str, list[str]] = {}
    for arm, own in arms.items():
        for config in _qk(own.methods):
            if config["init"] == "keep" or not config["freeze"] or not config["parts"]:
                continue
            alike = [found for other in arms.values() if other.settings == own.settings for found in _qk(other.methods)]
            if not any(_only_freezes(found, config) for found in alike):
                lacking.setdefault(_freezing_line(inputs, arms, arm, config), []).append(arm)
    kept = "drawn" if inputs.model.preset is not None else "pretrained"
    for line, found in lacking.items():
        yield Caution(
            "warning",
            "no-freezing-control",
            f"{_listed(found)}: Q and K get new weights and are frozen, and no arm of the same settings freezes the {kept} ones",
            "what freezing does and what the new weights do cannot be told apart",
            f"Add the arm `{line}`",
        )


def _no_observer(inputs: PlanInputs, arms: Arms) -> Iterator[Caution]:
    """Heads with a map that acts, and none of that size whose map only watches."""
    lacking: dict[str, list[str]] = {}
    for arm, own in arms.items():
        for acting in (use.config for use in own.methods if use.name == BPSOM and not use.config.idle):
            alike = [use.config for other in arms.values() if other.settings == own.settings for use in other.methods]
            if not any(config.control_for(acting) for config in alike):
                given = acting.model_dump(exclude_unset=True, include={"hidden"})
                fields = ", ".join([*(f"{name}: {value}" for name, value in given.items()), "alpha: 0, prune: null"])
                line = arm_line(inputs.study, arm, f"{BPSOM}-observer", f"[{{{BPSOM}: {{{fields}}}}}]")
                lacking.setdefault(line, []).append(arm)
    for line, found in lacking.items():
        yield Caution(
            "warning",
            "no-observer",
            f"{_listed(found)}: BP-SOM has a head of its own, and no arm has that head with a map that only watches",
            "what the head does and what the map does cannot be told apart",
            f"Add the arm `{line}`",
        )


def _qk(methods: Sequence[MethodUse]) -> list[dict[str, Any]]:
    return [use.config.model_dump(mode="json") for use in methods if use.name == QK]


def _only_freezes(config: Mapping[str, Any], acting: Mapping[str, Any]) -> bool:
    same = all(config[name] == acting[name] for name in ("layers", "parts"))
    return same and config["init"] == "keep" and config["freeze"] and not config["ffn"]


def _freezing_line(inputs: PlanInputs, arms: Arms, arm: str, config: Mapping[str, Any]) -> str:
    name = FREEZE if FREEZE not in arms else f"{FREEZE}-for-{arm}"
    own = {"layers": "all", "parts": ["q", "k"]}
    given = [f"{key}: {_flow(config[key])}" for key, usual in own.items() if config[key] != usual]
    return arm_line(inputs.study, arm, name, f"[{{{QK}: {{{', '.join(['init: keep', *given])}}}}}]")


def _flow(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _steps(arms: Arms, primaries: Mapping[str, str | None]) -> Iterator[Caution]:
    for arm, other, names in _unequal(arms, primaries, STEP):
        texts = [f"{name} {_values(arms, arm, other, name)}" for name in names]
        yield Caution(
            "warning",
            "unequal-steps",
            f"{arm} and {other}: {' and '.join(texts)}",
            "an optimizer step is not the same work in both, so their step times say nothing about the method",
            f"Give both the same {' and '.join(names)}, or compare no times",
        )


def _scored(arms: Arms, primaries: Mapping[str, str | None]) -> Iterator[Caution]:
    for arm, other, _ in _unequal(arms, primaries, ("eval_examples",)):
        yield Caution(
            "warning",
            "unequal-scoring",
            f"{arm} and {other}: eval_examples {_values(arms, arm, other, 'eval_examples')}",
            "they are selected and reported on different examples",
            "Set eval_examples once, under `train`",
        )


def _unequal(
    arms: Arms, primaries: Mapping[str, str | None], settings: Sequence[str]
) -> Iterator[tuple[str, str, list[str]]]:
    """Each arm and the one it is compared with, where they differ in some of these settings, and in which."""
    for arm, own in arms.items():
        other = primaries[arm]
        if other is not None and other in arms:
            theirs = arms[other].settings
            names = [name for name in settings if own.settings[name] != theirs[name]]
            if names:
                yield arm, other, names


def _values(arms: Arms, arm: str, other: str, setting: str) -> str:
    ours, theirs = (setting_text(setting, arms[one].settings[setting]) for one in (arm, other))
    return f"{ours} and {theirs}"


def _same_runs(arms: Arms) -> Iterator[Caution]:
    groups: list[list[str]] = []
    for arm, own in arms.items():
        for group in groups:
            first = arms[group[0]]
            alike = first.settings == own.settings and first.learner == own.learner
            if alike and list(first.methods) == list(own.methods):
                group.append(arm)
                break
        else:
            groups.append([arm])
    for group in groups:
        if len(group) > 1:
            yield Caution(
                "note",
                "same-runs",
                f"{_listed(group)} have the same settings and methods",
                "with the same seeds they train to the same bits, which shows nothing about the luck of seeds",
                "Keep one, and set `aa: true` for a copy of the reference with other random numbers",
            )


def _bidirectional(inputs: PlanInputs, arms: Arms) -> Iterator[Caution]:
    attention = Counter(own.settings["attention"] for own in arms.values())
    if inputs.task.kind != LANGUAGE_MODEL and set(attention) == {"bidirectional"}:
        yield Caution(
            "note",
            "bidirectional",
            "attention is bidirectional in all arms",
            "that is not a language model's attention, so nothing here shows how a causal model classifies",
            "Leave `attention` out for causal arms, or have arms of both kinds",
        )


def _extra_tuning(inputs: PlanInputs, arms: Arms) -> Iterator[Caution]:
    """Arms that choose settings of their methods too: a choice that the others do not have."""
    tune = inputs.study.tune
    groups: dict[tuple[str, ...], list[str]] = {}
    for arm, own in arms.items():
        if tune is not None and (names := tuple(tune.own([use.name for use in own.methods if not use.config.idle]))):
            groups.setdefault(names, []).append(arm)
    for names, found in groups.items():
        yield Caution(
            "note",
            "extra-tuning",
            f"{_listed(found)}: {_listed(names)} {'is' if len(names) == 1 else 'are'} tuned too, which arms without the method "
            "have no counterpart of",
            "they choose among more settings than the others, and part of a gain may be that choice's",
            "Report it as extra tuning, or take it out of the space",
        )


def _training(inputs: PlanInputs, arms: Arms) -> Iterator[Caution]:
    """Schedules and rates with which runs, or their trials, learn next to nothing."""
    study, groups = inputs.study, dict[tuple[str, Caution], list[str]]()
    for arm in arms:
        if not (steps := inputs.steps(arm)):
            continue
        train, tune = study.settings(arm), study.tune
        if tune is not None and "lr" in tune.space:
            train = train.model_copy(update={"lr": lowest(tune.space["lr"])})
        found = [("", caution) for caution in setting_cautions(train, study.methods(arm), steps)]
        if tune is not None and tune.cheaper and study.pairs(arm) is None:
            cheaper = Train.model_validate({**train.model_dump(), **tune.cheaper})
            steps = cheaper.total_steps(inputs.examples[arm])
            tried = setting_cautions(cheaper, study.methods(arm), steps)
            found += [("trials of ", caution) for caution in tried if caution not in [seen for _, seen in found]]
        chosen = () if tune is None else tune.shared
        for runs, caution in found:
            if caution.code != "warmup-long" or "warmup" not in chosen:  # which every trial sets for itself
                groups.setdefault((runs, caution), []).append(arm)
    for (runs, caution), names in groups.items():
        who = "all arms" if len(names) == len(arms) > 1 else _listed(names)
        yield replace(caution, seen=f"{runs}{who}: {caution.seen}")


def _texts(inputs: PlanInputs, arms: Arms) -> Iterator[Caution]:
    """Models that cannot read the texts, and lengths that cut none of them, model by model."""
    if inputs.data is None:
        return
    groups: dict[str, list[str]] = {}
    for arm in arms:
        if inputs.study.uses_model(arm):
            groups.setdefault(inputs.models[arm].identity, []).append(arm)
    for found in groups.values():
        model = inputs.models[found[0]]
        folder = inputs.tokenizer.folder if inputs.tokenizer else model.folder
        words = None if folder is None else tokenizer_folder(Path(folder))
        splits = [inputs.data.splits[name] for name in ("test", "train")]
        name = model.name if model.hub_id is None else model.hub_id
        if caution := language_caution(inputs.task.name, splits, name, None if words is None else words.load):
            yield caution
        if words is not None:
            yield from _lengths(inputs, {arm: arms[arm] for arm in found}, words)


def _lengths(inputs: PlanInputs, arms: Arms, words: TokenizerFolder) -> Iterator[Caution]:
    """Tokens are counted only where there is a question: counting takes seconds, once for each tokenizer."""
    data, lengths = inputs.data, {arm: inputs.study.settings(arm).longest for arm in arms}
    assert data is not None, "a task that classifies"
    given = {arm for arm in arms if "max_length" in inputs.study.settings(arm).model_fields_set}
    alike = [group for group in _but_for_length(arms) if len({lengths[arm] for arm in group}) > 1]
    least = most_words(data.splits["train"])  # a word has at least one token
    far = [arm for arm in given if is_far_above(lengths[arm], least)]
    if not far and not any(sorted(lengths[arm] for arm in group)[-2] >= least for group in alike):
        return
    counts = [train_counts(data, words), heldout_counts(data, words)]
    longest, n = max(one.longest for one in counts), sum(one.n for one in counts)
    counted = f"{n:,} {'sampled ' if any(one.sampled for one in counts) else ''}texts"
    notes = (length_caution(length, longest, counted) for length in sorted({lengths[arm] for arm in far}))
    if (caution := next(filter(None, notes), None)) is not None:
        yield caution
    for group in alike:
        whole = [arm for arm in group if lengths[arm] >= longest]
        if len({lengths[arm] for arm in whole}) > 1:
            values = _listed([f"{lengths[arm]}" for arm in whole])
            yield Caution(
                "warning",
                "same-lengths",
                f"{_listed(whole)}: max_length {values}, and the longest of {counted} has {longest} tokens",
                "they differ in nothing else and cut none of these texts, so they are the same runs twice",
                f"Compare lengths below {longest}, or keep one of them",
            )


def _but_for_length(arms: Arms) -> Iterator[list[str]]:
    """Arms that differ in `max_length` at most."""
    rest = dict(arms)
    while rest:
        first = next(iter(rest.values()))
        group = [
            arm
            for arm, own in rest.items()
            if {**own.settings, "max_length": 0} == {**first.settings, "max_length": 0}
            and list(own.methods) == list(first.methods)
            and own.learner == first.learner
        ]
        yield group
        rest = {arm: own for arm, own in rest.items() if arm not in group}


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
