"""Titles whose letters are damaged, and how titles look that were extracted well.

Neither capitals nor a footnote mark nor a full stop may give a class away.
"""

from __future__ import annotations

from collections.abc import Callable

from fairtune.tasks.titles.corruption import Draws, kind

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


def vary_surface(title: str, draws: Draws) -> str:
    """The title as a page might print it. Correct titles and those about to be corrupted are varied alike."""
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


SLIPS = (
    ("rn", "m"), ("m", "rn"), ("l", "1"), ("I", "l"), ("O", "0"), ("o", "0"), ("e", "c"), ("c", "e"), ("h", "b"), ("cl", "d"),
    ("d", "cl"), ("vv", "w"), ("w", "vv"), ("S", "5"), ("B", "8"), ("t", "f"), ("u", "n"), ("n", "u"), ("i", "!"), ("g", "q"),
    ("fi", " "), ("fl", " "), ("ff", " "), ("fi", "�"), ("fi", "?"), ("tion", "t?on"), ("a", "?"), ("e", ""), ("i", "?"),
)  # fmt: skip
GARBLE = "ÖÓÒØ×�ÙÐÑÈÇÅ¬Ö¨Ô�ÂÄ¾½¼À�"
MATHS = (
    "∂",
    "∑",
    "∫",
    "λ",
    "α",
    "β",
    "→",
    "≤",
    "∈",
    "=",
    "+",
    "−",
    "(x)",
    "(t)",
    "u",
    "n",
    "f",
    "R",
    "^2",
    "_i",
    "⊗",
    "×",
    "/",
    "2",
    "1",
    "|",
)


def slip(text: str, draws: Draws) -> str | None:
    """One misread letter or pair of letters; None where none of some tries fits."""
    for _ in range(8):
        wrong, right = draws.pick(SLIPS)
        places = [i for i in range(1, len(text)) if text.startswith(wrong, i)]
        if places:
            place = draws.pick(places)
            return text[:place] + right + text[place + len(wrong) :]
    return None


@kind(weight=3)
def ocr_noise(title: str, draws: Draws) -> str | None:
    """Many letters misread: one in eight or so."""
    text: str | None = title
    for _ in range(max(3, round(len(title) * (0.06 + 0.1 * draws.number(0, 10) / 10)))):
        text = slip(text, draws) if text is not None else None
    return text


@kind(weight=1.5, keeps_letters=True)
def lost_spacing(title: str, draws: Draws) -> str | None:
    """Words run together, or letters stand apart."""
    words = title.split()
    if len(words) < 4:
        return None
    if draws.chance(0.25):
        return " ".join(draws.pick((title, title.upper())).replace(" ", ""))
    kept = draws.number(0, 2)
    places = set(draws.some(range(1, len(words)), kept, kept))
    return "".join(f" {word}" if place in places else word for place, word in enumerate(words))


@kind(weight=2)
def garbled(title: str, draws: Draws) -> str | None:
    """Letters of an unreadable font, or a formula."""
    if draws.chance(0.5):
        return draws.pick(("", " ")).join(draws.pick(MATHS) for _ in range(draws.number(4, 14)))
    share = draws.pick((0.4, 0.7, 0.95))
    damaged = "".join(draws.pick(GARBLE) if letter.isalpha() and draws.chance(share) else letter for letter in title)
    return " ".join(damaged.split()[: draws.number(2, 8)])


@kind(weight=0.5, keeps_letters=True)
def wrong_case(title: str, draws: Draws) -> str | None:
    """Capitals in the wrong places: "nETWORKS oF sENSORS". Capitals throughout are not wrong, and stay correct."""
    if draws.chance(0.5):
        return " ".join(word[:1].lower() + word[1:].upper() for word in title.split())
    return "".join(letter.upper() if draws.chance(0.5) else letter.lower() for letter in title)
