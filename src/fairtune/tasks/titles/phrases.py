"""Patterns filled in: invented people, institutions, journals, headers and pages, never twice the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fairtune.tasks.titles import patterns, vocabulary
from fairtune.tasks.titles.corruption import Draws

SLOT = re.compile(r"\{(?P<low>\d+)\.\.(?P<high>\d+)\}|\{(?P<rule>\w+)(?P<case>[!^]?)\}|<(?P<choices>[^<]*?)>(?!=)")
CAPITALS = 0.25
MARKS = ("1", "2", "1,2", "∗", "*", "†", "‡", "a", "b", "")
LETTERS = "ABCDEFGHIJKLMNOPRSTVW"


def expand_phrase(rule: str, draws: Draws, title: str = "") -> str:
    """One form of a rule, filled in; the parts of the title are there for patterns that use them."""
    return _fill(draws.weighted(RULES[rule]), draws, title)


def _fill(pattern: str, draws: Draws, title: str) -> str:
    def slot(found: re.Match[str]) -> str:
        if found["low"]:
            return str(draws.number(int(found["low"]), int(found["high"])))
        if found["choices"] is not None:
            return _fill(draws.pick(found["choices"].split("|")), draws, title)
        text = _rule(found["rule"], draws, title)
        return text.upper() if found["case"] == "!" or (found["case"] and draws.chance(CAPITALS)) else text

    return SLOT.sub(slot, pattern)


def _rule(name: str, draws: Draws, title: str) -> str:
    if name in WORDS:
        return draws.pick(WORDS[name])
    if name in MADE:
        return MADE[name](draws)
    words = title.split()
    if name == "title":
        return title
    if name == "start":
        return " ".join(words[: draws.number(2, 5)])
    if name == "end":
        return " ".join(words[-draws.number(2, 4) :])
    if name == "tail":
        return " ".join(words[draws.number(0, 2) :][: draws.number(3, 8)]).lower()
    return expand_phrase(name, draws, title)


def _authors(draws: Draws) -> str:
    """One to five names, with or without the marks of their affiliations."""
    count = draws.weighted([(1 / (n + 1), n) for n in range(1, 6)])
    marked, joint = draws.chance(0.35), draws.pick((", ", ", ", " ", "; ", " · "))
    names = [
        expand_phrase("person", draws) + (draws.pick(("", " ")) + draws.pick(MARKS) if marked else "")
        for _ in range(count)
    ]
    if count > 1 and draws.chance(0.5):
        return joint.join(names[:-1]) + draws.pick((" and ", " & ", ", and ")) + names[-1]
    return joint.join(names)


def _pages(draws: Draws) -> str:
    first = draws.number(1, 1900)
    return f"{first}{draws.pick(('-', '–', ' - ', '--'))}{first + draws.number(3, 40)}"


def _ordinal(draws: Draws) -> str:
    number = draws.number(2, 38)
    last = 0 if number in (11, 12, 13) else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def _parse(text: str) -> dict[str, list[tuple[float, str]]]:
    rules: dict[str, list[tuple[float, str]]] = {}
    forms: list[tuple[float, str]] = []
    for line in text.strip().splitlines():
        if line.startswith(" "):
            weight, _, pattern = line.strip().partition(" ")
            forms.append((float(weight), pattern))
        else:
            forms = rules[line] = []
    return rules


RULES = {
    name: forms
    for block in (patterns.PEOPLE, patterns.PUBLICATIONS, patterns.HEADERS, patterns.PAGES, patterns.MERGES)
    for name, forms in _parse(block).items()
}
WORDS: Mapping[str, tuple[str, ...]] = {
    "first": vocabulary.FIRST_NAMES,
    "last": vocabulary.LAST_NAMES,
    "name_start": vocabulary.NAME_STARTS,
    "name_end": vocabulary.NAME_ENDS,
    "letter": tuple(LETTERS),
    "city": vocabulary.CITIES,
    "town": tuple(city.split(",")[0] for city in vocabulary.CITIES),
    "field": vocabulary.FIELDS,
    "publisher": vocabulary.PUBLISHERS,
    "month": vocabulary.MONTHS,
    "society": vocabulary.SOCIETIES,
    "degree": vocabulary.DEGREES,
    "section": vocabulary.SECTIONS,
    "form": vocabulary.FORM_WORDS,
}
MADE: Mapping[str, Callable[[Draws], str]] = {
    "authors": _authors,
    "pages": _pages,
    "ordinal": _ordinal,
    "year": lambda draws: str(draws.number(1975, 2014)),
    "acronym": lambda draws: "".join(draws.pick(LETTERS) for _ in range(draws.number(3, 5))),
    "handle": lambda draws: draws.pick(vocabulary.LAST_NAMES).lower()[: draws.number(3, 7)],
    "dots": lambda draws: draws.pick((".", " .", ". ")) * draws.number(4, 45),
}
