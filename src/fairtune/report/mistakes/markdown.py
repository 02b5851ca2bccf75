"""The section about mistakes as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.report.markdown_text import items, plain, table
from fairtune.report.mistakes.content import Groups, MistakesSection, ShownExample
from fairtune.report.mistakes.words import (
    example_text,
    groups_text,
    lists,
    mistake_cells,
    mistake_heads,
    mistakes_intro,
    share_text,
)
from fairtune.report.numbers import DASH

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
    yield from _list(f"Wrong in most of all {section.runs} runs", section.hard, section.hard_total, section.runs)
    for arm in section.arms:
        for title, examples, total in lists(section, arm):
            yield from _list(title, examples, total, arm.n)


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


def _list(title: str, examples: tuple[ShownExample, ...], total: int, runs: int) -> Iterator[str]:
    if not examples:
        return
    shown = examples[:SHOWN]
    more = f" ({len(shown)} of {total:,})" if len(shown) < total else ""
    yield ""
    yield f"{plain(title)}{more}:"
    yield ""
    told = [f"{' / '.join(example.texts) or example.id}: {example_text(example, runs)}" for example in shown]
    yield from items(map(plain, told))
