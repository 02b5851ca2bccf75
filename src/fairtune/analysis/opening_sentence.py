"""The sentence that a report opens with: what the evidence supports about the methods, n, and the warnings that matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fairtune.analysis.arm_pairs import BOTH, PRIMARY, SETTINGS, Comparison
from fairtune.analysis.scales import relative
from fairtune.analysis.sentences import Frame, interval_text
from fairtune.analysis.verdicts import BETTER, EQUIVALENT, INFERIOR, NONE, NOT_INFERIOR, NOT_SEPARABLE, NOT_SHOWN, WORSE
from fairtune.core.cautions import Caution
from fairtune.core.numbers import confidence, listed, plural
from fairtune.core.printable import capital

ORDER = (NOT_INFERIOR, EQUIVALENT, NOT_SEPARABLE, WORSE, INFERIOR, NOT_SHOWN, NONE)
"""The words after `better`, which comes first."""
NAMED = 3
"""Arms of a word that are named; the table names all."""
TOLD = 2
"""Warnings that are told; they all stand below."""
BRACKETS = re.compile(r"\s*\([^()]*\)")
LISTS = re.compile(r"(?:[^\W\d]\S*, ){4,}[^\W\d]\S*")
"""Of so many arms that no sentence bears it."""


def opening_sentence(
    frame: Frame,
    compared: Sequence[Comparison],
    cautions: Sequence[Caution],
    finished: int,
    planned: int,
    failed: int = 0,
) -> str:
    """What the evidence supports, in one sentence, and what to mind about it in a second.

    Args:
        compared: every arm's own comparison.
        finished, planned, failed: runs.
    """
    primary = [c for c in compared if c.role == PRIMARY]
    methods = [c for c in primary if c.about not in (SETTINGS, BOTH)]
    if not finished:
        return _nothing(planned, failed)
    parts = [*_about_methods(frame, methods), *_about_settings(frame, primary)]
    if not parts:
        parts = ["no two arms are compared"]
    sentence = f"{_progress(finished, planned, failed)}{'; '.join(parts)}."
    if sentence.startswith(("no ", "nothing ", "there ")):  # a name stays as it is written
        sentence = capital(sentence)
    return " ".join((sentence, *_warnings(cautions)))


def _nothing(planned: int, failed: int) -> str:
    if failed == planned:
        return f"All {planned} runs failed: there is nothing to compare." if planned > 1 else "The only run failed."
    some = f", and {failed} failed" if failed else ""
    return f"None of {planned} runs is finished{some}: there is nothing to compare yet."


def _progress(finished: int, planned: int, failed: int) -> str:
    """How many runs the rest is said of, where it is not all: some may come, the failed will not of themselves."""
    if finished == planned:
        return ""
    if finished + failed == planned:
        return f"{failed} of {planned} runs failed; "
    some = f" and {failed} failed" if failed else ""
    return f"{finished} of {planned} runs are finished{some}; so far "


def _about_methods(frame: Frame, compared: Sequence[Comparison]) -> Iterator[str]:
    if not compared:
        return
    if not any(c.found.n for c in compared):
        yield f"no method has a run that could be compared with one of {_than(compared, each='its control')}"
        return
    better = [c for c in compared if c.verdict.word == BETTER]
    n = _n(compared)
    if better:
        figures = f" by {_figure(frame, better[0])}" if len(better) == 1 else ""
        than = _than(better)
        yield f"{_names(better)} {_is(better)} better than {than}{figures} over {n}"
    else:
        yield f"no method is shown to be better than {_than(compared, each='its control')} over {n}"
    for word in ORDER:
        found = [c for c in compared if c.verdict.word == word]
        if not found:
            continue
        if word == NONE:
            yield f"there is no verdict on {_names(found)}"
        else:
            yield f"{_names(found)} {_is(found)} {word}"


def _about_settings(frame: Frame, compared: Sequence[Comparison]) -> Iterator[str]:
    """Arms that differ from theirs in settings; and those that differ in both, about which nothing can be said."""
    by_settings = [c for c in compared if c.about == SETTINGS and c.verdict.word in (BETTER, WORSE, INFERIOR)]
    for found in by_settings[:TOLD]:
        how = f"is {found.verdict.word} {'to' if found.verdict.word == INFERIOR else 'than'} {found.reference}"
        settings = " and ".join(found.confounds)
        yield f"{found.arm} {how} by its settings ({settings}), {_figure(frame, found)}, not by a method"
    if both := [c for c in compared if c.about == BOTH]:
        yield f"nothing can be said of {_names(both)}, as no arm has the same settings without the method"


def _warnings(cautions: Sequence[Caution]) -> Iterator[str]:
    """The gravest, without the figures in brackets, which stand below."""
    grave = [caution for caution in cautions if caution.grade != "note"]
    if not grave:
        return
    told = [shorten_lists(BRACKETS.sub("", caution.seen)) for caution in grave[:TOLD]]
    more = len(grave) - len(told)
    rest = f"; and {plural(more, 'more warning')}" if more else ""
    yield f"But mind: {'; '.join(told)}{rest}."


def shorten_lists(text: str) -> str:
    """Text in which of many arms in a row only the first are named."""

    def shorten(found: re.Match[str]) -> str:
        names = found[0].split(", ")
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} others"

    return LISTS.sub(shorten, text)


def _figure(frame: Frame, found: Comparison) -> str:
    """The difference with the interval of the family it is judged in."""
    shown = (
        relative(found.difference, found.means[1])
        if frame.scale.plain
        else f"{frame.scale.signed(found.difference)} points"
    )
    lower = "lower is better; " if frame.scale.lower_is_better else ""
    ends, among = found.family, frame.size(found)
    if ends[0] is None:
        ends, among = found.alone, 1
    of = f" among {among}" if among > 1 else ""
    return f"{shown} ({lower}{confidence(frame.confidence)}{of}: {interval_text(frame, found, ends)})"


def _names(found: Sequence[Comparison]) -> str:
    names = [c.arm for c in found[:NAMED]]
    more = len(found) - len(names)
    if more == 1:
        names.append(found[-1].arm)
    elif more:
        names.append(f"{more} others")
    return listed(names)


def _is(found: Sequence[Comparison]) -> str:
    return "is" if len(found) == 1 else "are"


def _than(found: Sequence[Comparison], each: str = "their controls") -> str:
    """What they are compared with, if it is one arm; else in a word."""
    others = {c.reference for c in found}
    return others.pop() if len(others) == 1 else each


def _n(found: Sequence[Comparison]) -> str:
    counts = sorted({c.found.n for c in found if c.found.n})  # an arm without runs has no verdict, which is said
    return plural(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
