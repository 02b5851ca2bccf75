"""Damage by a seed: bits and pieces of bytes, and values within JSON."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

DEEP = 100_000
HOSTILE: tuple[bytes, ...] = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\\ud800",
    b'\\u0000"',
    b'"',
    b'""',
    b"'",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\t",
    b",",
    b",,,,",
    b"{",
    b"}",
    b"[" * 2000,
    b"[" * DEEP,
    b'{"a":' * 900,
    b"1e999999",
    b"-1",
    b"9" * 5000,
    b"NaN",
    b"Infinity",
    b"null",
    b"true",
    b"../../x",
    b"\x1b[2J",
    b"@article{",
    b"\\",
    b"{{{{",
    b"x" * 70_000,
    "é😀\u2028".encode(),
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "\ud800",
    "\x00",
    "\x1b[2J",
    "../../x",
    "x" * 3000,
    [],
    {},
    [[]],
    {"": {}},
    [None] * 50,
)


def damaged(content: bytes, seed: int) -> bytes:
    """The bytes with one to three things done to them; never the same as before."""
    dice = random.Random(seed)
    found = content
    while found == content:
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            found = dice.choice(BYTES)(found, dice)
    return found


def damaged_json(value: Any, seed: int) -> bytes:
    """A JSON text with one value or key changed, gone or nested; it stays JSON, as Python writes it."""
    dice = random.Random(seed)
    changed = copy.deepcopy(value)
    places = list(_places(changed))
    if not places:
        return json.dumps(dice.choice(VALUES)).encode()
    holder, key = dice.choice(places)
    match dice.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[dice.choice(("", "x", f"{key} ", str(key).upper()))] = holder.pop(key)
        case 2:
            for _ in range(dice.choice((1, 50, 500))):
                holder[key] = [holder[key]]
        case 3 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = dice.choice((-holder[key], holder[key] + 1, holder[key] * 10**6, str(holder[key])))
        case _:
            holder[key] = copy.deepcopy(dice.choice(VALUES))
    return json.dumps(changed).encode()


def _places(value: Any) -> Any:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


Change = Callable[[bytes, random.Random], bytes]


def _spot(content: bytes, dice: random.Random) -> int:
    """A place, more often near one of the ends, where formats keep what they say of themselves."""
    size = len(content)
    near = min(size, 200)
    return dice.choice((dice.randint(0, near), size - dice.randint(0, near), dice.randint(0, size)))


def _flip_bits(content: bytes, dice: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(dice.choice((1, 1, 1, 2, 8))):
        if found:
            found[min(_spot(content, dice), len(found) - 1)] ^= 1 << dice.randrange(8)
    return bytes(found)


def _set_byte(content: bytes, dice: random.Random) -> bytes:
    place = _spot(content, dice)
    return content[:place] + bytes([dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))]) + content[place + 1 :]


def _cut_off(content: bytes, dice: random.Random) -> bytes:
    return content[: _spot(content, dice)]


def _cut_out(content: bytes, dice: random.Random) -> bytes:
    place = _spot(content, dice)
    return content[:place] + content[place + dice.choice((1, 2, 4, 16, 256)) :]


def _insert(content: bytes, dice: random.Random) -> bytes:
    place = _spot(content, dice)
    return content[:place] + dice.choice(HOSTILE) + content[place:]


def _overwrite(content: bytes, dice: random.Random) -> bytes:
    place, new = _spot(content, dice), dice.choice(HOSTILE)
    return content[:place] + new + content[place + len(new) :]


def _insert_noise(content: bytes, dice: random.Random) -> bytes:
    place = _spot(content, dice)
    return content[:place] + dice.randbytes(dice.choice((1, 4, 64))) + content[place:]


def _repeat(content: bytes, dice: random.Random) -> bytes:
    place, size = _spot(content, dice), dice.choice((1, 8, 64, 512))
    return content[:place] + content[place : place + size] * dice.choice((2, 2, 100)) + content[place:]


def _other_encoding(content: bytes, dice: random.Random) -> bytes:
    try:
        return content.decode().encode(
            dice.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7")), "replace"
        )
    except UnicodeDecodeError:
        return content[::-1]


BYTES: tuple[Change, ...] = (
    _flip_bits,
    _flip_bits,
    _flip_bits,
    _set_byte,
    _cut_off,
    _cut_out,
    _insert,
    _insert,
    _overwrite,
    _insert_noise,
    _repeat,
    _other_encoding,
)
