"""The section about mistakes as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.markdown import items, plain, table
from fairtune.core.numbers import DASH
from fairtune.report.mistakes.content import Groups, MistakesSection
from fairtune.report.mistakes.words import (
    ExampleList,
    arm_lists,
    example_text,
    groups_text,
    hard_list,
    mistake_cells,
    mistake_heads,
    mistakes_intro,
    share_text,
)

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
    told = [f"{' / '.join(one.texts) or one.id}: {example_text(found, one)}" for one in shown]
    yield from items(map(plain, told))
