"""Texts damaged as files are, and as an attacker would: seeded, so that what was found once is found again."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence


def _each(listed: str) -> list[str]:
    return listed.split(" ¦ ")


HOSTILE_YAML = (
    *_each(
        "null ¦ true ¦ [] ¦ {} ¦ '' ¦ -1 ¦ 0 ¦ 1.5 ¦ .nan ¦ .inf ¦ -.inf ¦ 1e400 ¦ 1e-400"
    ),
    "9" * 30, "9" * 400, "9" * 5000,
    *_each(
        "9223372036854775808 ¦ 4294967296 ¦ 0-9999999999 ¦ 1000000000 ¦ 1e400% ¦ nan% ¦ 99999999999B ¦ ²s ¦ "
        "[1, 1, 1] ¦ {a: {b: {c: 1}}} ¦ [[[[]]]]"
    ),
    "[" * 200, "{a: " * 200,
    *_each(
        "- - - - ¦ *nowhere ¦ &a [*a] ¦ &a {<<: *a} ¦ !!python/object:os.system x ¦ !!binary aGk= ¦ "
        "!!timestamp 2001-99-99 ¦ !!int x ¦ !mine x ¦ 2001-99-99 ¦ ? a ¦ \"\\ud800\" ¦ \"\\0\" ¦ \"\\e[2J\" ¦ "
        "\"\\U00110000\" ¦ \"\\x9b\" ¦ \"a\\nb\" ¦ .. ¦ a/b ¦ ../../etc/passwd ¦ /dev/zero ¦ ~nobody/x"
    ),
    "x" * 300, "x" * 5000, "é" * 200,
    *_each(
        "report ¦ LOGS ¦ gpt-mini(vocab_size=1000000000) ¦ gpt-mini([[[) ¦ {preset: gpt-mini, context: 1000000000} ¦ "
        "{train: 1000000000000} ¦ [cpu, cpu, cpu] ¦ cuda:99999999999 ¦ 5h5h ¦ [{peft: {r: 1000000000}}] ¦ "
        "[{bpsom: {grid: 1000000000}}] ¦ [{weighted_ce: {weights: [.inf, 1e400]}}] ¦ [ema, ema] ¦ {<<: [1, 2]} ¦ "
        "|\n  text ¦ >9\n x ¦ 'open ¦ \"open ¦ a: b: c ¦ %YAML 9.9 ¦ --- x ¦ # gone ¦ \t ¦ \ufeff"
    ),
)  # fmt: skip

Mutator = Callable[[str, random.Random, Sequence[str]], str]


def damaged(text: str, seed: int, hostile: Sequence[str] = HOSTILE_YAML) -> bytes:
    """The text with one to three faults; equal for equal seeds.

    Args:
        hostile: what may be put in place of a value.
    """
    draws = random.Random(seed)
    for _ in range(draws.choice((1, 1, 2, 3))):
        text = draws.choice(MUTATORS)(text, draws, hostile)
    return text.encode("utf-8", "surrogateescape")


def _flip(text: str, draws: random.Random, _: Sequence[str]) -> str:
    content = bytearray(text.encode("utf-8", "surrogateescape"))
    for _ in range(draws.choice((1, 1, 5))):
        if content:
            content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
    return content.decode("utf-8", "surrogateescape")


def _replace_value(text: str, draws: random.Random, hostile: Sequence[str]) -> str:
    """A value after a colon, in a line or between brackets."""
    places = list(re.finditer(r":[ \t]+([^,\n{}\[\]]+|\[[^\[\]\n]*\]|\{[^{}\n]*\})", text))
    if not places:
        return text
    place = draws.choice(places)
    return text[: place.start(1)] + draws.choice(hostile) + text[place.end(1) :]


def _replace_word(text: str, draws: random.Random, hostile: Sequence[str]) -> str:
    """Also a key, a list's entry or half of something."""
    place = draws.choice(list(re.finditer(r"[\w.-]+", text)) or [re.match("", text)])
    assert place is not None
    return text[: place.start()] + draws.choice(hostile) + text[place.end() :]


def _delete_line(text: str, draws: random.Random, _: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    del lines[draws.randrange(len(lines))]
    return "".join(lines)


def _repeat_line(text: str, draws: random.Random, _: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    line = draws.choice(lines)
    lines.insert(draws.randrange(len(lines) + 1), line)
    return "".join(lines)


def _indent_line(text: str, draws: random.Random, _: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    place = draws.randrange(len(lines))
    lines[place] = draws.choice(("  ", "\t", " ", "- ", "? ", "&x ", "*x ")) + lines[place]
    return "".join(lines)


def _cut(text: str, draws: random.Random, _: Sequence[str]) -> str:
    start = draws.randrange(len(text) + 1)
    return text[:start] + text[start + draws.choice((1, 3, 20, len(text))) :]


def _insert(text: str, draws: random.Random, hostile: Sequence[str]) -> str:
    place = draws.randrange(len(text) + 1)
    return (
        text[:place]
        + draws.choice(("\0", "\x1b[2J", "\ufeff", "\u2028", "\x85", ":", "{", "]", "'", '"', *hostile))
        + text[place:]
    )


MUTATORS: tuple[Mutator, ...] = (
    *(_flip, _delete_line, _repeat_line, _indent_line, _cut, _insert, _replace_word),
    *(_replace_value, _replace_value, _replace_value),  # the deepest, as most of the file stays readable
)
