"""A balanced set of correct and wrong titles, made of correct ones; the same seed and titles give the same set."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.tasks.titles import cuts, lines, noise
from fairtune.tasks.titles.corruption import (
    CORRECT,
    REGISTERED,
    Draws,
    Kind,
)
from fairtune.tasks.titles.noise import vary_surface
from fairtune.tasks.titles.vocabulary import FORM_WORDS, SECTIONS

ROOMS = tuple(module.__name__ for module in (cuts, lines, noise))
"""The order decides which draws a seed gives to which kind."""
ROWS = 20_000
FEWEST = 10
TRIES, KINDS_TRIED = 12, 6
"""Titles that are tried with a kind, and kinds that are tried, before giving up."""
SPARE = 0.02
"""Share of the titles that may go unused: some do not lend themselves to the kind whose turn it is."""
MOST_WORDS = 40
NO_TITLE = re.compile(
    r"(the )?(proceedings|abstracts?|letter|editorial|erratum|corrigendum|correction|book reviews?)( of\b|:)|front ?matter"
)
MARKUP = re.compile(r"</?(?:i|b|em|sub|sup|strong)>", re.IGNORECASE)
NO_LETTERS = re.compile(r"[\W_]+")
HEADINGS = frozenset(word.lower() for word in (*SECTIONS, *FORM_WORDS))


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
    share = weigh(weights or {})
    titles = usable_titles(correct)
    most = _most_rows(len(titles), share)
    if most < FEWEST:
        raise DataError(
            f"make-titles: {len(titles)} usable titles are too few; at least {_needed(FEWEST, share)} are needed."
        )
    if rows is not None and (rows < FEWEST or rows % 2):
        raise DataError(f"make-titles: {rows} rows; allowed: an even number from {FEWEST}, half of them correct.")
    if rows is not None and rows > most:
        raise DataError(
            f"make-titles: {len(titles)} usable titles allow {most} rows and {rows} were asked for; a title serves once only. "
            f"Ask for fewer rows, or give more titles."
        )
    return _Maker(titles, seed).make(rows or min(ROWS, most), share)


def _titles_per_row(share: Mapping[str, float]) -> float:
    known = kinds()
    wrong = sum(weight * known[name].titles for name, weight in share.items()) / sum(share.values())
    return (1 + wrong) / 2


def _needed(rows: int, share: Mapping[str, float]) -> int:
    return int(rows * _titles_per_row(share) / (1 - SPARE)) + 2


def _most_rows(titles: int, share: Mapping[str, float]) -> int:
    most = int(titles * (1 - SPARE) / _titles_per_row(share)) // 2 * 2
    return most if most <= 0 or _needed(most, share) <= titles else most - 2


def _quotas(total: int, share: Mapping[str, float]) -> dict[str, int]:
    """How many rows of each kind: whole numbers that add up, as near to the weights as can be."""
    whole = {name: total * weight / sum(share.values()) for name, weight in share.items()}
    counts = {name: int(exact) for name, exact in whole.items()}
    for name in sorted(whole, key=lambda name: counts[name] - whole[name])[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


class _Maker:
    """Hands out titles, one after the other, to what is made of them."""

    def __init__(self, titles: list[str], seed: int) -> None:
        self._draws = Draws(f"make-titles {seed}", self._another)
        self._unused = deque(self._draws.shuffled(titles))
        self._sources = {comparable(title) for title in titles}
        self._made: set[str] = set()

    def _another(self) -> str:
        return vary_surface(self._unused.popleft(), self._draws)

    def make(self, rows: int, share: Mapping[str, float]) -> list[MadeTitle]:
        known = kinds()
        turns = [known[name] for name, count in _quotas(rows // 2, share).items() for _ in range(count)]
        wrong = [self._wrong(turn, share) for turn in self._draws.shuffled(turns)]
        right = [self._correct() for _ in range(rows - len(wrong))]
        return self._draws.shuffled([*wrong, *right])

    def _correct(self) -> MadeTitle:
        original = self._unused.popleft()
        return MadeTitle(vary_surface(original, self._draws), 1, CORRECT, original)

    def _wrong(self, turn: Kind, share: Mapping[str, float]) -> MadeTitle:
        """A wrong title that is none of the source's and was not made before; of another kind where this one fails."""
        for attempt in range(1, KINDS_TRIED * TRIES + 1):
            original = self._unused.popleft()
            varied = vary_surface(original, self._draws)
            text = " ".join((turn.corrupt(varied, self._draws) or "").split())
            if text and text != varied and self._is_new(text, turn):
                return MadeTitle(text, 0, turn.name, original)
            self._unused.append(original)
            if attempt % TRIES == 0:
                turn = self._draws.weighted([(weight, kinds()[name]) for name, weight in share.items()])
        raise DataError(
            f"make-titles: no wrong title of kind {turn.name} could be made; they are too short or too "
            "alike. Give longer titles, or more weight to other kinds."
        )

    def _is_new(self, text: str, turn: Kind) -> bool:
        """Whether a wrong title is no title of the source, and not made before."""
        key = comparable(text)
        new = key not in self._made and (turn.keeps_letters or key not in self._sources)
        if new:
            self._made.add(key)
        return new


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


def kinds() -> dict[str, Kind]:
    """Every kind by name, in an order that does not depend on what was imported first."""
    return dict(sorted(REGISTERED.items(), key=lambda item: ROOMS.index(item[1].corrupt.__module__)))


def weigh(changes: Mapping[str, float]) -> dict[str, float]:
    """The weight of each kind, some of them changed.

    Raises:
        DataError: an unknown kind, a negative weight, or nothing left.
    """
    known = kinds()
    for name, weight in changes.items():
        if name not in known:
            raise DataError(f"weight: no kind '{name}'; kinds: {one_of(known)}.{nearest(name, known)}")
        if not 0 <= weight < float("inf"):
            raise DataError(f"weight: {name}={weight:g}; a weight is 0 (never) or a number above it.")
    weights = {name: float(changes.get(name, known[name].weight)) for name in known}
    if not sum(weights.values()):
        raise DataError("weight: every kind has weight 0; leave at least one above it.")
    return weights
