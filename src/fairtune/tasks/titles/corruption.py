"""Wrong titles made of correct ones by the grammar, and how a page prints a title that is correct."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Mapping, Sequence

from fairtune.tasks.titles.grammar import RULES, words_of

CHOICE = re.compile(r"<([^<>]*)>")
SLOT = re.compile(r"\{(\d+)\.\.(\d+)\}|\{(\w+)([!^-]?)\}")
FEWEST_WORDS = 5
"""A shorter title is not cut: what is left could be anything."""
FUNCTION_WORDS = frozenset(words_of("function_word"))
Words = Sequence[str]


def corrupt(kind: str, title: str, other: str, draws: random.Random) -> str | None:
    """A wrong title; None if the title does not lend itself to the kind.

    Args:
        other: another title, for kinds that merge two.
    """
    try:
        return " ".join(_expand(kind, title.split(), other.split(), draws).split())
    except ValueError:  # too few words for what a form takes of them
        return None


def _expand(rule: str, title: Words, other: Words, draws: random.Random) -> str:
    """One form of a rule, filled in."""

    def slot(found: re.Match[str]) -> str:
        low, high, name, case = found.groups()
        if low:
            return str(draws.randint(int(low), int(high)))
        words, part = (other if name.startswith("other_") else title), name.removeprefix("other_")
        if part in CUTS and len(words) < FEWEST_WORDS:
            raise ValueError(part)
        text = _expand(name, title, other, draws) if name in RULES else " ".join(PARTS[part](words, draws))
        if case == "!" or (case == "^" and draws.random() < 0.25):
            return text.upper()
        return text.lower() if case == "-" else text

    weights, forms = zip(*RULES[rule], strict=True)
    (form,) = draws.choices(forms, weights)
    while "<" in form:
        form = CHOICE.sub(lambda found: draws.choice(found[1].split("|")), form)
    return SLOT.sub(slot, form)


def _open_ends(words: Words) -> list[int]:
    """Places after a word with which no title ends."""
    return [
        i for i in range(2, len(words)) if words[i - 1].endswith((":", "–")) or words[i - 1].lower() in FUNCTION_WORDS
    ]


def _piece(words: Words, draws: random.Random) -> Words:
    (count,) = draws.choices((1, 2, 3), (5, 5, 1))
    start = draws.randint(0, len(words) - count)
    return [word.strip(".,;:()[]\"'“”?!") for word in words[start : start + count]]


def _misread(words: Words, draws: random.Random) -> Words:
    title = " ".join(words)
    for _ in range(max(3, round(len(title) * draws.uniform(0.06, 0.16)))):
        title = _slip(title, draws)
    return [title]


def _slip(title: str, draws: random.Random) -> str:
    """One letter, or pair of letters, misread; nothing where none of some tries fits."""
    for _ in range(8):
        right, wrong = draws.choice(words_of("misreading")).split("=")
        places = [i for i in range(1, len(title)) if title.startswith(right, i)]
        if places:
            place = draws.choice(places)
            return title[:place] + wrong + title[place + len(right) :]
    return title


def _spaced(words: Words, draws: random.Random) -> Words:
    if draws.random() < 0.25:
        return "".join(words)
    kept = draws.sample(range(1, len(words)), draws.randint(0, 2))
    return ["".join(f" {word}" if place in kept else word for place, word in enumerate(words))]


def _unreadable(words: Words, draws: random.Random) -> Words:
    share, letters = draws.choice((0.4, 0.7, 0.95)), words_of("unreadable_letter")
    text = " ".join(words[: draws.randint(2, 8)])
    return ["".join(draws.choice(letters) if one.isalpha() and draws.random() < share else one for one in text)]


PARTS: Mapping[str, Callable[[Words, random.Random], Words]] = {
    "title": lambda words, _: words,
    "start": lambda words, draws: words[: draws.randint(2, 5)],
    "end": lambda words, draws: words[-draws.randint(2, 4) :],
    "some": lambda words, draws: words[draws.randint(0, 2) :][: draws.randint(3, 8)],
    "cut": lambda words, draws: words[: draws.randint(max(2, len(words) // 3), len(words) - 1)],
    "open_cut": lambda words, draws: words[: draws.choice(_open_ends(words) or [len(words) - 1])],
    "rest": lambda words, draws: words[draws.randint(1, len(words) - 2) :],
    "open_rest": lambda words, draws: words[draws.choice(_open_ends(words) or [2]) - 1 :],
    "piece": _piece,
    "misread": _misread,
    "spaced": _spaced,
    "unreadable": _unreadable,
}
"""What a form may take of a title."""
CUTS = ("cut", "open_cut", "rest", "open_rest", "piece", "spaced")


def _every_word(title: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in title.split())


def vary_surface(title: str, draws: random.Random) -> str:
    """A title as a page might print it: capitals, a note mark or a lost hyphen may not give a class away, so both are varied."""

    def chance(probability: float) -> bool:
        return draws.random() < probability

    for probability, old, new in (
        (0.2, "-", ("", " ", "–", "- ")),
        (0.15, ":", (" :", " -", " –", "")),
        (0.2, "'", "’"),
    ):
        if chance(probability):
            title = title.replace(old, draws.choice(new), 1)
    if chance(0.3):
        title = title.replace("’", "'").replace("“", '"').replace("”", '"')
    if chance(0.02):
        title = title.replace(" ", "", 1)
    if chance(0.02):
        title = _slip(title, draws)
    (case,) = draws.choices((str, str.upper, _every_word, str.capitalize, string.capwords), (66, 13, 10, 7, 4))
    title = " ".join(case(title).split())
    if chance(0.015):
        title += draws.choice((" (Extended Abstract)", " (extended abstract)", ": A Survey", " – Preliminary Report"))
    if chance(0.04):
        return title + draws.choice(words_of("note_mark"))
    return f"{title}." if chance(0.02) and title[-1].isalnum() else title
