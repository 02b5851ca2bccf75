"""Text made fit to be shown: codes that a terminal, a page or a reader would obey are written out, as Python writes them.

`\\x1b[2J` in a label is shown as these seven characters. So are all control codes (C0, DEL, C1), what turns the direction of text
around (U+202A to U+202E, U+2066 to U+2069), separators of lines and paragraphs, lone surrogates and non-characters. Joiners and
direction marks, which emoji and right-to-left texts need, stay.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeVar

LINES = "\n\t"
"""What texts of several lines may keep."""
CODES = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
T = TypeVar("T")


def printable(text: str, keep: str = "") -> str:
    """The text with every code written out, but for those to keep; doing it twice changes nothing more."""
    return CODES.sub(lambda code: code[0] if code[0] in keep else code[0].encode("unicode_escape").decode(), text)


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def clip(text: str, most: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable_json(text: str) -> str:
    """JSON that means the same without a code in it; `json.dumps` escapes only the lowest ones."""
    return CODES.sub(lambda code: code[0] if code[0] == "\n" else f"\\u{ord(code[0]):04x}", text)


def with_printable_texts(value: T) -> T:
    """Data (dataclasses, mappings, sequences) with every text in it printable; where all are, the very same object."""
    return _each(value)  # type: ignore[no-any-return]


def _each(value: Any) -> Any:
    if isinstance(value, str):
        safe = printable(value, LINES)
        return value if safe == value else safe
    if isinstance(value, dict):
        pairs = [(_each(key), _each(one)) for key, one in value.items()]
        changed = any(a is not b or c is not d for (a, c), (b, d) in zip(pairs, value.items(), strict=True))
        return dict(pairs) if changed else value
    if type(value) in (list, tuple):
        made = type(value)(map(_each, value))
        return made if any(a is not b for a, b in zip(value, made, strict=True)) else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        changes = {name: made for name, one in own.items() if (made := _each(one)) is not one}
        return dataclasses.replace(value, **changes) if changes else value
    return value
