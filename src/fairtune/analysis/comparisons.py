"""Comparisons: which arms are compared with which, what each comparison says, and what it hangs on.

Each arm has one primary comparison, fixed in the plan: with its control, else with the reference. Primary comparisons are the
family that is corrected together. Simple baselines, which are cheap and many, are a family of their own, so that they cost the
methods no power. Arms that lack one method of several are another. All else is descriptive and gets no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairtune.analysis.arm_pairs import (
    BOTH,
    COPY,
    DESCRIPTIVE,
    PRIMARY,
    SECONDARY,
    SIMPLE,
    ArmPair,
    Comparison,
    differing_parts,
    is_simple_pair,
)
from fairtune.analysis.statistics import PairedDifference
from fairtune.analysis.study_facts import StudyFacts
from fairtune.analysis.verdicts import (
    BETTER,
    EQUIVALENT,
    INFERIOR,
    NOT_INFERIOR,
    NOT_SEPARABLE,
    NOT_SHOWN,
    WORSE,
    Family,
    Verdict,
    judge_family,
)
from fairtune.settings.metrics import METRICS

SURVIVES = {
    BETTER: {BETTER},
    NOT_INFERIOR: {BETTER, NOT_INFERIOR, EQUIVALENT},
    EQUIVALENT: {EQUIVALENT},
    WORSE: {WORSE, INFERIOR},
    INFERIOR: {INFERIOR},
}
"""Words that still say what a verdict says."""


def compare_primaries(study: StudyFacts) -> list[Comparison]:
    """Each arm's primary comparison, in the order of the arms."""
    pairs = [(arm, other) for arm in study.arms if (other := study.primary(arm)) is not None]
    matched = [pair for pair in pairs if study.plan["arms"][pair[0]].get("matches")]
    pairs = [pair for pair in pairs if pair not in matched]
    copies = [pair for pair in pairs if _is_copy(study, pair[0])]
    simple = [pair for pair in pairs if pair not in copies and is_simple_pair(study, *pair)]
    mixed = [pair for pair in pairs if pair not in copies and differing_parts(study, *pair) == BOTH]
    tested = [pair for pair in pairs if pair not in (*copies, *mixed, *simple)]
    found = [
        *_compare_family(study, tested, PRIMARY, len(study.registration.given_up)),
        *_compare_family(study, simple, SIMPLE, len(study.registration.given_up_learners)),
        *(_compare_copy(study, pair) for pair in copies),
        *(_compare_mixed(study, *pair) for pair in mixed),
        *(_describe(study, *pair) for pair in matched),
    ]
    return sorted(found, key=lambda one: study.arms.index(one.arm))


def compare_left_out(study: StudyFacts) -> list[Comparison]:
    """Each arm of several methods against the arm that lacks one of them: a secondary family, corrected among themselves."""
    pairs = left_out_pairs({arm: study.methods(arm) for arm in study.arms}, study.reference)
    mixed = [pair for pair in pairs if differing_parts(study, *pair) == BOTH]
    apart = [pair for pair in pairs if pair not in mixed and not chose_alike(study.plan, *pair)]
    tested = _compare_family(study, [pair for pair in pairs if pair not in (*mixed, *apart)], SECONDARY)
    found = [
        *tested,
        *(_compare_mixed(study, *pair, SECONDARY) for pair in mixed),
        *(_compare_apart(study, *pair) for pair in apart),
    ]
    return sorted(found, key=lambda one: pairs.index((one.arm, one.reference)))


def compare_claimed(study: StudyFacts, pairs: Sequence[tuple[str, str]]) -> list[Comparison]:
    """Pairs that the plan does not compare: a family of their own, in whose correction the plan's own comparisons count too."""
    planned = sum(one.role == PRIMARY and one.verdict.p is not None for one in compare_primaries(study))
    mixed = [pair for pair in pairs if differing_parts(study, *pair) == BOTH]
    apart = [
        pair
        for pair in pairs
        if pair not in mixed and not is_simple_pair(study, *pair) and not chose_alike(study.plan, *pair)
    ]
    tested = [pair for pair in pairs if pair not in (*mixed, *apart)]
    found = [
        *_compare_family(study, tested, SECONDARY, planned + len(study.registration.given_up)),
        *(_compare_mixed(study, *pair, SECONDARY) for pair in mixed),
        *(_compare_apart(study, *pair) for pair in apart),
    ]
    return sorted(found, key=lambda one: pairs.index((one.arm, one.reference)))


def compare_raw(study: StudyFacts) -> list[Comparison]:
    """Plain differences to the reference, of arms whose primary comparison is another: to look at, not to conclude from."""
    arms = [arm for arm in study.arms if study.primary(arm) not in (None, study.reference)]
    return [_describe(study, arm, study.reference) for arm in arms]


def _compare_copy(study: StudyFacts, pair: tuple[str, str]) -> Comparison:
    """The reference against itself: a family of its own, in which no more seeds are wanted."""
    (found,) = _compare_family(study, [pair], COPY)
    open_one = found.verdict.word == NOT_SEPARABLE
    return replace(found, verdict=replace(found.verdict, note="as it should be", needed=None)) if open_one else found


def _describe(study: StudyFacts, arm: str, other: str) -> Comparison:
    made = ArmPair(study, arm, other)
    return made.comparison(made.difference(), Verdict(DESCRIPTIVE, None, ""), DESCRIPTIVE)


def _compare_apart(study: StudyFacts, arm: str, other: str) -> Comparison:
    """Two arms that chose other settings, without a control that has both: the luck of choosing would pass for the method."""
    made = ArmPair(study, arm, other)
    names = " and ".join(study.plan["tuning"]["fields"])
    note = f"they chose another {names}, and it may be that; their comparisons with their controls are the fair ones"
    return made.comparison(made.difference(), Verdict(NOT_SHOWN, None, note), SECONDARY)


def _compare_mixed(study: StudyFacts, arm: str, other: str, role: str = PRIMARY) -> Comparison:
    """An arm that differs in methods and in settings: whatever is found, nobody can tell which of them did it."""
    made = ArmPair(study, arm, other)
    names = " and ".join(made.confounds)
    many = "methods" if len(study.methods(arm)) > 1 else "method"
    note = f"{many} and {names} cannot be told apart; it takes an arm with the same {names} and no methods"
    return made.comparison(made.difference(), Verdict(NOT_SHOWN, None, note), role)


def _compare_family(
    study: StudyFacts, pairs: Sequence[tuple[str, str]], role: str, given_up: int = 0
) -> list[Comparison]:
    made = [ArmPair(study, arm, other) for arm, other in pairs]
    found = [pair.difference() for pair in made]
    family = Family(
        study.confidence,
        study.metric,
        METRICS[study.metric].lower_is_better,
        tuple(pair.schedule() for pair in made),
        [[pair.difference(seeds) for seeds in pair.looks] for pair in made],
        given_up + sum(one.p is None for one in found),
    )
    margins = [pair.compared_margin() for pair in made]
    verdicts = judge_family(found, margins, family)
    verdicts = _hold(study, made, found, verdicts, lambda others: judge_family(others, margins, family))
    beside = _match(study, made, found, lambda others: judge_family(others, margins, replace(family, earlier=())))
    verdicts = [_hold_beside(verdict, other) for verdict, other in zip(verdicts, beside, strict=True)]
    kept = [pair.learned() for pair in made]
    without: list[tuple[PairedDifference, Verdict] | None] = [None] * len(made)
    if any(seeds is not None for seeds in kept):
        other = [
            one if seeds is None else pair.difference(seeds) for one, pair, seeds in zip(found, made, kept, strict=True)
        ]
        again = judge_family(other, margins, replace(family, earlier=()))
        without = [None if s is None else (o, v) for s, o, v in zip(kept, other, again, strict=True)]
    return [
        replace(pair.comparison(one, verdict, role, left), matched=other)
        for pair, one, verdict, left, other in zip(made, found, verdicts, without, beside, strict=True)
    ]


def _match(
    study: StudyFacts,
    made: Sequence[ArmPair],
    found: Sequence[PairedDifference],
    judge: Callable[[Sequence[PairedDifference]], list[Verdict]],
) -> list[Comparison | None]:
    """Each arm against its matched control, in the same family; None where both chose the same settings."""
    controls = [
        study.plan["arms"][pair.arm].get("matched") if pair.other == study.primary(pair.arm) else None for pair in made
    ]
    if not any(controls):
        return [None] * len(made)
    pairs = [
        pair if name is None else ArmPair(study, pair.arm, name) for pair, name in zip(made, controls, strict=True)
    ]
    others = [one if pair in made else pair.difference() for one, pair in zip(found, pairs, strict=True)]
    return [
        None if name is None else pair.comparison(one, verdict, DESCRIPTIVE)
        for name, pair, one, verdict in zip(controls, pairs, others, judge(others), strict=True)
    ]


def _hold_beside(verdict: Verdict, other: Comparison | None) -> Verdict:
    """A verdict as far as it holds against the matched control too: else it may be one of settings."""
    if other is None or not verdict.settled or other.verdict.word in SURVIVES[verdict.word]:
        return verdict
    note = (
        f"{verdict.word} beside its partner as that was tuned, but {other.verdict.word} beside {other.reference}, which has the "
        "settings that this arm chose: it may be the settings"
    )
    return replace(verdict, word=NOT_SHOWN, note=note)


def _hold(
    study: StudyFacts,
    made: Sequence[ArmPair],
    found: Sequence[PairedDifference],
    verdicts: Sequence[Verdict],
    judge: Callable[[Sequence[PairedDifference]], list[Verdict]],
) -> list[Verdict]:
    """Verdicts as far as they do not hang on runs that are missing, or on seeds that were left out."""
    dropped = study.registration.dropped if not study.registration.reanalysed else ()
    held = list(verdicts)
    for as_chance in (False, True):
        counted = judge([pair.counted(one, as_chance) for pair, one in zip(made, found, strict=True)])
        for place, pair in enumerate(made):
            verdict, other = held[place], counted[place]
            if not pair.missing or not verdict.settled or other.word in SURVIVES[verdict.word]:
                continue
            note = _hangs_on(pair.missing, verdict.word, other.word, as_chance)
            if as_chance:  # the harshest count there is: the verdict stands, and says so
                held[place] = replace(verdict, note="; ".join(filter(None, (verdict.note, note))))
            else:
                held[place] = replace(verdict, word=NOT_SHOWN, note=note)
    gone = study.registration.reference_gone
    for place, pair in enumerate(made):
        reason = ""
        if not pair.other_learned() and not is_simple_pair(study, pair.arm, pair.other):
            reason = f"{pair.other} did not learn, so nothing here compares methods"
        elif gone is not None and pair.other == study.reference:
            reason = f"{gone}, the reference that was planned, was taken out after results were known"
        if reason and held[place].settled:
            held[place] = replace(held[place], word=NOT_SHOWN, note=reason)
    if dropped:
        seeds = f"{'seed' if len(dropped) == 1 else 'seeds'} {', '.join(map(str, dropped))}"
        note = f"{seeds} had results and {'was' if len(dropped) == 1 else 'were'} left out of the newest plan"
        held = [replace(verdict, word=NOT_SHOWN, note=note) if verdict.settled else verdict for verdict in held]
    return held


def _hangs_on(missing: Sequence[str], word: str, other: str, as_chance: bool) -> str:
    runs = " and ".join(missing) if len(missing) < 4 else f"{len(missing)} runs without a score"
    one = len(missing) == 1
    what = "a model that learned nothing" if as_chance else "worse than all others of its arm"
    without, counts = ("it", "it counts") if one else ("them", "each counts")
    return f"hangs on {runs}: {word} without {without}, {other} if {counts} as {what}"


def chose_alike(plan: Mapping[str, Any], arm: str, other: str) -> bool:
    """Whether two arms have the same settings where each chose its own."""
    fields = (plan.get("tuning") or {}).get("fields", ())
    ours, theirs = (plan["arms"][one]["train"] for one in (arm, other))
    return all(ours.get(name) == theirs.get(name) for name in fields)


def _is_copy(study: StudyFacts, arm: str) -> bool:
    return study.plan["arms"][arm].get("copy_of") is not None


Methods = Sequence[Mapping[str, Any]]
"""An arm's methods as a plan has them: each by its name with all its settings."""


def left_out_pairs(arms: Mapping[str, Methods], reference: str) -> list[tuple[str, str]]:
    """Arms with two methods or more, each with every other arm that has all of them but one, in the same order.

    The reference is not among the others: what is compared with it stands elsewhere.
    """
    return [
        (arm, other)
        for arm in arms
        for other in arms
        if arm != other != reference and left_out_method(arms[arm], arms[other]) is not None
    ]


def left_out_method(whole: Methods, part: Methods) -> str | None:
    """The one method of an arm that the other lacks; None if that is not the difference between them."""
    if not whole or not part or len(whole) != len(part) + 1:
        return None
    places = [place for place in range(len(whole)) if [*whole[:place], *whole[place + 1 :]] == list(part)]
    return next(iter(whole[places[0]])) if places else None
