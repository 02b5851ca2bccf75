"""The titles of a BibTeX file: nested braces, quotes, `#`, several lines, LaTeX accents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from fairtune.core.errors import DataError

ENTRY = re.compile(r"@\s*([A-Za-z]+)\s*[{(]\s*[^\s,={}]*\s*,?")
FIELD = re.compile(r"[\s,]*([A-Za-z][\w:+/.-]*)\s*=\s*")
BARE = re.compile(r"[^\s,#{}()\"]*")
SIGN = re.compile(r"\\.|[{}\"]", re.DOTALL)
"""What opens and closes, and what a backslash takes along."""
JOINT = re.compile(r"\s*#\s*")
ACCENTED = re.compile(r"\\(?:([`'^~\"=.])\s*|([uvHckrdb])(?:\s+|(?=\{)))(?:\{\s*\\?(\w)\s*\}|\\?(\w))")
MARKS = "`\u0300'\u0301^\u0302~\u0303\"\u0308=\u0304.\u0307u\u0306v\u030cH\u030bc\u0327k\u0328r\u030ad\u0323b\u0331"
ACCENTS = dict(zip(MARKS[::2], MARKS[1::2], strict=True))
COMMANDS = re.split(
    r"\s+",
    """ss ß o ø O Ø l ł L Ł ae æ AE Æ oe œ OE Œ aa å AA Å i i j j S § ldots … dots … textendash – textemdash — alpha α beta β
    gamma γ delta δ epsilon ε lambda λ mu μ pi π sigma σ omega ω infty ∞ times × rightarrow → leq ≤""",
)
LETTERS = dict(zip(COMMANDS[::2], COMMANDS[1::2], strict=True))


def bibtex_fields(text: str, field: str, where: str) -> Iterator[str]:
    """One field of every entry that has it, as plain text.

    Raises:
        DataError: a value that does not end, with its line.
    """
    place = 0
    while (entry := ENTRY.search(text, place)) is not None:
        place = entry.end()
        if entry[1].lower() in ("comment", "preamble", "string") and "{" in entry[0]:
            place = _closed(text, entry.start() + entry[0].index("{"), where)
            continue
        while (name := FIELD.match(text, place)) is not None:
            value, place = _value(text, name.end(), where)
            if name[1].lower() == field.lower():
                yield plain_text(value)


def _value(text: str, place: int, where: str) -> tuple[str, int]:
    """A field's value and the place after it; parts joined by `#` are put together."""
    value = ""
    while True:
        if text[place : place + 1] in ("{", '"'):
            after = _closed(text, place, where)
            value += text[place + 1 : after - 1]
        else:
            bare = BARE.match(text, place)
            after = bare.end() if bare else place
            value += text[place:after]
        joint = JOINT.match(text, after)
        if joint is None:
            return value, after
        place = joint.end()


def _closed(text: str, start: int, where: str) -> int:
    """The place after what closes the brace or quotation mark at `start`."""
    depth, opened = 0, text[start]
    for sign in SIGN.finditer(text, start + 1):
        if depth == 0 and sign[0] == {"{": "}", '"': '"'}[opened]:
            return sign.end()
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
    line = text.count("\n", 0, start) + 1
    raise DataError(f"{where}: line {line}: the '{opened}' that opens here is never closed.")


def plain_text(latex: str) -> str:
    """LaTeX as it would be printed: accents composed, commands and braces gone."""
    text = re.sub(r"(?<!\\)%.*\n\s*", "", latex)
    text = ACCENTED.sub(lambda m: unicodedata.normalize("NFC", (m[3] or m[4]) + ACCENTS[m[1] or m[2]]), text)
    text = re.sub(r"\\([A-Za-z]+)\*?\s*", lambda m: LETTERS.get(m[1], ""), text)
    text = re.sub(r"\\([&%$#_{}])", r"\1\0", text)
    text = re.sub(r"[{}$](?!\0)", "", text).replace("\0", "")
    text = re.sub(r"\\[,;:! ]|~", " ", text).replace("\\", "")
    for written, printed in (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”")):
        text = text.replace(written, printed)
    return " ".join(text.split())
