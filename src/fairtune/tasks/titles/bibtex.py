"""The titles of a BibTeX file as plain text: nested braces, quotes, several lines, LaTeX accents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from fairtune.core.errors import DataError

SIGN = re.compile(r"\\.|[{}\"]", re.DOTALL)
"""What opens and closes, and what a backslash takes along."""
ACCENTED = re.compile(r"\\(?:([`'^~\"=.])\s*|([uvHckrdb])(?:\s+|(?=\{)))(?:\{\s*\\?(\w)\s*\}|\\?(\w))")
MARKS = "`\u0300'\u0301^\u0302~\u0303\"\u0308=\u0304.\u0307u\u0306v\u030cH\u030bc\u0327k\u0328r\u030ad\u0323b\u0331"
ACCENTS = dict(zip(MARKS[::2], MARKS[1::2], strict=True))
LETTERS = """ss ß o ø O Ø l ł L Ł ae æ AE Æ oe œ OE Œ aa å AA Å i i j j S § ldots … dots … textendash – textemdash — alpha α beta β
    gamma γ delta δ epsilon ε lambda λ mu μ pi π sigma σ omega ω infty ∞ times × rightarrow → leq ≤"""
COMMANDS = dict(zip(*[iter(LETTERS.split())] * 2, strict=True))


def bibtex_fields(text: str, field: str, where: str) -> Iterator[str]:
    """One field wherever it is written, in braces or quotation marks.

    Raises:
        DataError: a value that does not end, with its line.
    """
    name = re.compile(rf"(?<![\w:+/.-]){re.escape(field)}\s*=\s*(?=[{{\"])", re.IGNORECASE)
    end = 0
    while (found := name.search(text, end)) is not None:
        end = _closed(text, found.end(), where)
        yield plain_text(text[found.end() + 1 : end - 1])


def _closed(text: str, start: int, where: str) -> int:
    """The place after what closes the brace or quotation mark at `start`."""
    depth, closing = 0, "}" if text[start] == "{" else '"'
    for sign in SIGN.finditer(text, start + 1):
        if depth == 0 and sign[0] == closing:
            return sign.end()
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
    line = text.count("\n", 0, start) + 1
    raise DataError(f"{where}: line {line}: the '{text[start]}' that opens here is never closed.")


def plain_text(latex: str) -> str:
    """LaTeX as it would be printed: accents composed, commands and braces gone."""
    text = re.sub(r"(?<!\\)%.*\n\s*", "", latex)
    text = ACCENTED.sub(lambda m: unicodedata.normalize("NFC", (m[3] or m[4]) + ACCENTS[m[1] or m[2]]), text)
    text = re.sub(r"\\([A-Za-z]+)\*?\s*", lambda m: COMMANDS.get(m[1], ""), text)
    text = re.sub(r"\\([&%$#_{}])", r"\1\0", text)
    text = re.sub(r"[{}$](?!\0)", "", text).replace("\0", "")
    text = re.sub(r"\\[,;:! ]|~", " ", text).replace("\\", "")
    for written, printed in (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”")):
        text = text.replace(written, printed)
    return " ".join(text.split())
