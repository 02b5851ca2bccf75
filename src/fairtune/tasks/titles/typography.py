"""How titles look that were extracted well, so that neither capitals nor a footnote mark nor a full stop gives a class away."""

from __future__ import annotations

from collections.abc import Callable

from fairtune.tasks.titles.corruption import Draws
from fairtune.tasks.titles.noise import slip

NOTE_MARKS = ("∗", "*", " ∗", " *", " †", " ⋆", " 1", "1", "¹", " ∗†", " #")


def _every_word(text: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in text.split())


CASES: tuple[tuple[float, Callable[[str], str]], ...] = (
    (66, str),
    (13, str.upper),
    (10, _every_word),
    (7, lambda text: text[:1].upper() + text[1:].lower()),
    (4, lambda text: _every_word(text.lower())),
)


def dress(title: str, draws: Draws) -> str:
    """The title as a page might print it. Correct titles and those about to be corrupted are dressed alike."""
    text = _spelled(title, draws)
    text = draws.weighted(CASES)(text)
    if draws.chance(0.015):
        text += draws.pick((" (Extended Abstract)", " (extended abstract)", ": A Survey", " – Preliminary Report"))
    if draws.chance(0.04):
        text += draws.pick(NOTE_MARKS)
    elif draws.chance(0.02) and text[-1].isalnum():
        text += "."
    return text


def _spelled(title: str, draws: Draws) -> str:
    """Small losses that leave a title correct: a hyphen, a space, a quotation mark, one letter."""
    text = title
    if "-" in text and draws.chance(0.2):
        text = text.replace("-", draws.pick(("", " ", "–", "- ")), 1)
    if ":" in text and draws.chance(0.15):
        text = text.replace(":", draws.pick((" :", " -", " –", "")), 1)
    if draws.chance(0.3):
        text = text.replace("’", "'").replace("“", '"').replace("”", '"')
    elif draws.chance(0.2):
        text = text.replace("'", "’")
    if draws.chance(0.02) and " " in text:
        words = text.split(" ")
        place = draws.number(1, len(words) - 1)
        text = " ".join(words[:place]) + " ".join(words[place:])
    if draws.chance(0.02):
        text = slip(text, draws) or text
    return " ".join(text.split())
