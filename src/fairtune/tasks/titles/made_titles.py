"""A balanced set of correct and wrong titles, made of correct ones; the same seed and titles give the same set."""

from __future__ import annotations

import itertools
import random
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.tasks.titles.corruption import corrupt, vary_surface
from fairtune.tasks.titles.grammar import KINDS, RULES, words_of

CORRECT = "correct"
"""What the column `kind` says of a correct title."""
ROWS, FEWEST = 20_000, 10
TRIES = 12
"""Titles that are tried with a kind before another kind has its turn, and kinds that are tried."""
SPARE = 0.98
"""Share of the titles that may be used up: some do not lend themselves to the kind whose turn it is."""
MOST_WORDS = 40
NO_TITLE = re.compile(
    r"(the )?(proceedings|abstracts?|letter|editorial|erratum|corrigendum|correction|book reviews?)( of\b|:)|front ?matter"
)
MARKUP = re.compile(r"</?(?:i|b|em|sub|sup|strong)>", re.IGNORECASE)
NO_LETTERS = re.compile(r"[\W_]+")
HEADINGS = frozenset(word.lower() for rule in ("section", "form") for word in words_of(rule))


@dataclass(frozen=True)
class MadeTitle:
    """An example: `label` is 1 for a correct title, and `kind` says what was done to a wrong one's `original`."""

    title: str
    label: int
    kind: str
    original: str


def make_titles(
    correct: Iterable[str | None], rows: int | None = None, seed: int = 0, weights: Mapping[str, float] | None = None
) -> list[MadeTitle]:
    """Half correct titles, half corrupted ones. A title serves once only: as a correct one, or in one corruption.

    Args:
        correct: unusable ones (empty, one word, a heading, repeated) are left out.
        rows: how many; if absent, 20,000 or as many as the titles allow.
        weights: of kinds that shall occur more or less often than they do by themselves; 0 is never.

    Raises:
        DataError: too few titles, an odd or impossible number of rows, an unknown kind or a wrong weight.
    """
    share, titles = weigh(weights or {}), usable_titles(correct)
    used = (1 + sum(weight * _titles_used(kind) for kind, weight in share.items()) / sum(share.values())) / 2 / SPARE
    most = max(0, int((len(titles) - 1) / used) // 2 * 2)
    rows = min(ROWS, most) if rows is None else rows
    if rows % 2 or not FEWEST <= rows <= most:
        raise DataError(
            f"make-titles: {rows} rows; {len(titles)} usable titles allow {most}, since each serves once only, and rows are an "
            f"even number from {FEWEST}. Ask for another number of rows, or give more titles."
        )
    return _made(titles, rows, share, random.Random(f"make-titles {seed}"))


def _titles_used(kind: str) -> int:
    """How many correct titles one wrong title of a kind uses up."""
    return 2 if any("{other" in form for _, form in RULES[kind]) else 1


def _made(titles: list[str], rows: int, share: Mapping[str, float], draws: random.Random) -> list[MadeTitle]:
    draws.shuffle(titles)
    unused, taken = deque(titles), {comparable(title) for title in titles}

    def wrong(kind: str) -> MadeTitle:
        """A wrong title that is none of the source's and was not made before; of another kind where this one fails."""
        for attempt in range(1, TRIES * TRIES):
            original, other = unused.popleft(), unused[0]
            varied = vary_surface(original, draws)
            text = corrupt(kind, varied, vary_surface(other, draws), draws)
            key = comparable(text or "")
            is_new = key not in taken or (kind == "lost_spacing" and key == comparable(original))
            if text and text != varied and is_new:
                taken.add(key)
                if _titles_used(kind) == 2:
                    unused.popleft()
                return MadeTitle(text, 0, kind, original)
            unused.append(original)
            if attempt % TRIES == 0:
                (kind,) = draws.choices(list(share), list(share.values()))
        raise DataError(
            f"make-titles: no wrong title of kind {kind} could be made; they are too short or too alike. Give longer titles, or "
            "more weight to other kinds."
        )

    turns: list[str] = []
    for kind, weight in zip(share, itertools.accumulate(share.values()), strict=True):
        turns += [kind] * (round(rows / 2 * weight / sum(share.values())) - len(turns))
    draws.shuffle(turns)
    made = [wrong(kind) for kind in turns]
    correct = itertools.islice(unused, rows - len(made))
    made += [MadeTitle(vary_surface(title, draws), 1, CORRECT, title) for title in correct]
    draws.shuffle(made)
    return made


def usable_titles(titles: Iterable[str | None]) -> list[str]:
    """Titles fit for making examples: tidied, each once; without empty ones, single words, headings and whole paragraphs."""
    kept: dict[str, str] = {}
    for title in titles:
        text = tidied(title or "")
        key = text.lower()
        if 2 <= len(text.split()) <= MOST_WORDS and key not in HEADINGS and not NO_TITLE.match(key):
            kept.setdefault(comparable(text), text)
    return list(kept.values())


def tidied(title: str) -> str:
    """One line without markup, the brackets of translated titles, or a final full stop, which some sources always write."""
    text = " ".join(MARKUP.sub("", title).split())
    if text.startswith("[") and text.rstrip(".").endswith("]"):
        text = text.rstrip(".")[1:-1].strip()
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


def comparable(title: str) -> str:
    """Letters and digits alone: two titles that differ in nothing else are one."""
    return NO_LETTERS.sub("", title.lower()) or title


def weigh(changes: Mapping[str, float]) -> dict[str, float]:
    """The weight of each kind, some of them changed.

    Raises:
        DataError: an unknown kind, a negative weight, or nothing left.
    """
    for name, weight in changes.items():
        if name not in KINDS:
            raise DataError(f"weight: no kind '{name}'; kinds: {one_of(KINDS)}.{nearest(name, KINDS)}")
        if not 0 <= weight < float("inf"):
            raise DataError(f"weight: {name}={weight:g}; a weight is 0 (never) or a number above it.")
    weights = {name: float(changes.get(name, kind.weight)) for name, kind in KINDS.items()}
    if not sum(weights.values()):
        raise DataError("weight: every kind has weight 0; leave at least one above it.")
    return weights
