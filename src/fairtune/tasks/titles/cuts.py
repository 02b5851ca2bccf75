"""Kinds where a part of the title is missing."""

from __future__ import annotations

from fairtune.tasks.titles.corruption import Draws, kind
from fairtune.tasks.titles.vocabulary import FUNCTION_WORDS


def is_function_word(word: str) -> bool:
    return word.lower().strip(",;:()") in FUNCTION_WORDS


@kind(weight=12)
def truncated_end(title: str, draws: Draws) -> str | None:
    """The end is missing, as where only the first line of a title was taken: "Networks of Sensors in"."""
    words = title.split()
    if len(words) < 4:
        return None
    open_ended = [i for i in range(2, len(words)) if is_function_word(words[i - 1])]
    if open_ended and draws.chance(0.7):  # other cuts often leave what could well be a title
        return " ".join(words[: draws.pick(open_ended)])
    return " ".join(words[: draws.number(max(2, len(words) // 3), len(words) - 1)])


@kind(weight=4)
def ellipsis(title: str, draws: Draws) -> str | None:
    """The end is replaced by dots: "A Theory of . . ."."""
    words = title.split()
    if len(words) < 4:
        return None
    kept = " ".join(words[: draws.number(3, len(words) - 1)])
    return kept.rstrip(".,;:") + draws.weighted([(6, " . . ."), (1, "..."), (1, " ..."), (1, "…")])


@kind(weight=3)
def truncated_start(title: str, draws: Draws) -> str | None:
    """The beginning is missing, as where only the last line of a title was taken: "of Sensors in Forests"."""
    words = title.split()
    if len(words) < 5:
        return None
    joints = [i for i in range(1, len(words) - 1) if is_function_word(words[i])]
    if joints and draws.chance(0.7):
        return " ".join(words[draws.pick(joints) :])
    return " ".join(words[draws.number(1, len(words) - 2) :])


@kind(weight=2)
def before_colon(title: str, draws: Draws) -> str | None:
    """What follows a colon, a dash or a bracket is missing, but not the sign itself: "A Survey:"."""
    places = [i + 1 for i, letter in enumerate(title) if letter in ":–—(" and 8 < i < len(title) - 2]
    if not places:
        return None
    place = draws.pick(places)
    if title[place - 1] == "(":
        closed = title.find(")", place)
        place = min(len(title) - 1 if closed < 0 else closed, place + draws.number(1, 12))
    return title[:place].rstrip()


@kind(weight=2)
def hyphenated(title: str, draws: Draws) -> str | None:
    """A word that was divided at a line's end: cut after the hyphen, or left in two pieces."""
    words = title.split()
    long = [i for i, word in enumerate(words) if len(word) > 6 and word.isalpha()]
    if not long:
        return None
    place = draws.pick(long)
    cut = draws.number(3, len(words[place]) - 3)
    start, end = f"{words[place][:cut]}-", words[place][cut:]
    if len(long) < 2 or draws.chance(0.7):
        return " ".join([*words[:place], start])
    other = draws.pick([i for i in long if i != place])
    words[place] = f"{start} {end}"
    words[other] = f"{words[other][:3]}- {words[other][3:]}"
    return " ".join(words)


@kind(weight=10)
def fragment(title: str, draws: Draws) -> str | None:
    """One to three words from anywhere on the page: a heading, a keyword, a stray piece of a line."""
    words = [word.strip(".,;:()[]\"'“”?!") for word in title.split()]
    count = draws.weighted([(5, 1), (5, 2), (1.2, 3)])
    starts = [i for i in range(len(words) - count + 1) if all(len(word) > 1 for word in words[i : i + count])]
    if len(words) < 5 or not starts:
        return None
    start = draws.pick(starts)
    piece = words[start : start + count]
    if is_function_word(piece[0]) or is_function_word(piece[-1]):
        text = " ".join(piece)
    else:
        text = draws.pick((" ", " ", ", ")).join(piece)
    return draws.weighted(
        [
            (4, text),
            (2, text.lower()),
            (1, text.upper()),
            (1, f"{text[:1].upper()}{text[1:].lower()}"),
            (0.6, f"{draws.pick('•·–●*')} {text}"),
            (0.6, f"{draws.number(1, 9)}.{draws.pick(('', f'{draws.number(1, 9)}', f'{draws.number(1, 9)}.'))} {text}"),
            (0.5, f"{text.lower()}."),
            (0.5, f"The {text}"),
        ]
    )
