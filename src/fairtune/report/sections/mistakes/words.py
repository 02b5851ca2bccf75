"""Mistakes in words: headings, cells and notes that page and Markdown share, and the Markdown itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.analysis.mistakes import Share
from fairtune.core.markdown import items, plain, table
from fairtune.core.numbers import DASH, confidence, share
from fairtune.report.sections.mistakes.content import (
    ArmMistakes,
    MistakesSection,
    RunCount,
    ShownExample,
)
from fairtune.report.sections.mistakes.examples import Groups

MOST_CONFUSIONS = 3
MOST_CLASSES = 15
"""Of which a whole matrix is shown."""


def mistakes_intro(section: MistakesSection) -> str:
    return (
        f"Counts are means over the finished runs of an arm (lowest to highest run), on the {section.examples:,} test examples. "
        f"“Only here” are examples that most runs of the arm, and not most runs of {section.reference}, get right or wrong."
    )


def mistake_heads(section: MistakesSection) -> list[str]:
    heads = ["arm", "n", "wrong"]
    if len(section.labels) == 2:
        no, yes = section.labels
        heads += [f"false positives: “{no}” taken for “{yes}”", f"false negatives: “{yes}” taken for “{no}”"]
    else:
        heads.append("most frequent confusions")
    return [*heads, "right only here", "wrong only here"]


def mistake_cells(section: MistakesSection, arm: ArmMistakes) -> list[str]:
    cells = [arm.arm, str(arm.n), count_text(arm.wrong)]
    if arm.false_positives is not None and arm.false_negatives is not None:
        cells += [count_text(arm.false_positives), count_text(arm.false_negatives)]
    else:
        cells.append(_confusions(section, arm))
    return [*cells, *(DASH if n is None else f"{n:,}" for n in (arm.gains, arm.losses))]


def count_text(count: RunCount) -> str:
    low_to_high = f" ({count.low:,} to {count.high:,})" if count.low < count.high else ""
    return f"{number(count.mean)}{low_to_high}"


def number(value: float) -> str:
    """A mean of counts: whole where it is."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _confusions(section: MistakesSection, arm: ArmMistakes) -> str:
    found = [
        (count, section.labels[true], section.labels[taken])
        for true, row in enumerate(arm.confusion)
        for taken, count in enumerate(row)
        if true != taken and count
    ]
    largest = sorted(found, key=lambda one: -one[0])[:MOST_CONFUSIONS]
    return "; ".join(f"“{true}” for “{taken}” {number(count)}" for count, true, taken in largest) or DASH


def share_text(found: Share) -> str:
    return f"{share(found.value)} ({share(found.low)} to {share(found.high)})"


def groups_text(groups: Groups, of: str, level: float) -> str:
    """What a table of groups shows."""
    text = (
        f"Accuracy (%) by {of} on the {groups.split} split, the mean over runs, with Wilson's {confidence(level)} interval for n "
        "examples; the luck of seeds is not in it."
    )
    if groups.split == "validation":
        text += " Only validation examples have kinds; checkpoints were selected on them, so that these figures flatter a little."
    return text


@dataclass(frozen=True)
class ExampleList:
    """Some examples under a title.

    Args:
        whose: the runs that got them wrong, in words.
        other: the runs that they are compared with; empty where there are none.
        total: how many there are.
    """

    title: str
    whose: str
    other: str
    examples: tuple[ShownExample, ...]
    total: int


def hard_list(section: MistakesSection) -> ExampleList:
    """What most of all runs get wrong."""
    runs = "the one run" if section.runs == 1 else f"all {section.runs} runs"
    title = f"Wrong in {runs}" if section.runs == 1 else f"Wrong in most of {runs}"
    return ExampleList(title, runs, "", section.hard, section.hard_total)


def arm_lists(section: MistakesSection, arm: ArmMistakes) -> list[ExampleList]:
    """What one arm gets right or wrong and the reference does not."""
    if arm.gains is None or arm.losses is None:
        return []
    ours, theirs = f"{arm.arm}’s runs", f"{section.reference}’s"
    return [
        ExampleList(
            f"Right in most runs of {arm.arm}, wrong in most of {section.reference}",
            f"{section.reference}’s runs", f"{arm.arm}’s", arm.gained, arm.gains,
        ),
        ExampleList(
            f"Wrong in most runs of {arm.arm}, right in most of {section.reference}", ours, theirs, arm.lost, arm.losses
        ),
    ]  # fmt: skip


def example_text(found: ExampleList, example: ShownExample) -> str:
    """What is said of an example beside its text."""
    other = f", {_percent(example.other_wrong)} of {found.other}" if example.other_wrong is not None else ""
    return (
        f"is “{example.label}”, taken for “{example.predicted}” by {_percent(example.wrong)} of {found.whose}{other}; "
        f"confidence {_percent(example.confidence)}"
    )


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def matrix(section: MistakesSection, arm: ArmMistakes) -> list[list[str]] | None:
    """The confusion matrix, one row per true class; None of very many classes."""
    if len(section.labels) > MOST_CLASSES:
        return None
    return [
        [label, *(number(count) for count in row)] for label, row in zip(section.labels, arm.confusion, strict=True)
    ]


SHOWN = 5
"""Examples in a list; the page has more."""


def mistake_lines(section: MistakesSection, level: float) -> Iterator[str]:
    yield plain(mistakes_intro(section))
    yield ""
    rows = [[plain(cell) for cell in mistake_cells(section, arm)] for arm in section.arms]
    yield from table([plain(head) for head in mistake_heads(section)], rows)
    yield ""
    yield from items(map(plain, section.notes))
    for groups, of in ((section.kinds, "kind"), (section.lengths, "length in tokens")):
        if groups is not None:
            yield ""
            yield plain(groups_text(groups, of, level))
            yield ""
            yield from _groups(groups, of, [arm.arm for arm in section.arms])
    for found in (hard_list(section), *(one for arm in section.arms for one in arm_lists(section, arm))):
        yield from _list(found)


def _groups(groups: Groups, of: str, arms: list[str]) -> Iterator[str]:
    rows = [
        [
            plain(group.name),
            str(group.n),
            *(share_text(group.shares[arm]) if arm in group.shares else DASH for arm in arms),
        ]
        for group in groups.rows
    ]
    yield from table([of, "n", *map(plain, arms)], rows)


def _list(found: ExampleList) -> Iterator[str]:
    if not found.examples:
        return
    shown = found.examples[:SHOWN]
    more = f" ({len(shown)} of {found.total:,})" if len(shown) < found.total else ""
    yield ""
    yield f"{plain(found.title)}{more}:"
    yield ""
    lines = [f"{' / '.join(one.texts) or one.id}: {example_text(found, one)}" for one in shown]
    yield from items(map(plain, lines))
