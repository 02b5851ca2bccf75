"""The titles of a BibTeX file: nested braces, quotes, `#`, several lines, LaTeX accents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from fairtune.core.errors import DataError

ENTRY = re.compile(r"@\s*([A-Za-z]+)\s*([{(])")
NAME = re.compile(r"[\s,]*([A-Za-z][\w:+/.-]*)\s*=\s*")
BARE = re.compile(r"[^\s,#{}()\"]*")
SIGN = re.compile(r"""\\.|[{}()"]""", re.DOTALL)
"""What opens and closes, and what a backslash takes along."""
JOINT = re.compile(r"\s*#\s*")
ACCENTED = re.compile(
    r"""\\(?:(?P<sign>[`'^~"=.])\s*|(?P<name>[uvHckrdb])(?:\s+|(?=\{)))(?:\{\s*\\?(?P<braced>\w)\s*\}|\\?(?P<bare>\w))"""
)
IGNORED = ("comment", "preamble", "string")
ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323", "b": "\u0331",
}  # fmt: skip
LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å",
    "i": "i", "j": "j", "S": "§", "copyright": "©", "ldots": "…", "dots": "…", "textendash": "–", "textemdash": "—",
    "textquoteright": "’", "textquoteleft": "‘", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε",
    "lambda": "λ", "mu": "μ", "pi": "π", "sigma": "σ", "omega": "ω", "infty": "∞", "times": "×", "rightarrow": "→", "leq": "≤",
}  # fmt: skip


def bibtex_fields(text: str, field: str, where: str) -> Iterator[str]:
    """One field of every entry that has it, as plain text.

    Raises:
        DataError: an entry or a value that does not end, with its line.
    """
    place = 0
    while (entry := ENTRY.search(text, place)) is not None:
        place = entry.end()
        if entry[1].lower() in IGNORED:
            place = _matching(text, entry.end() - 1, where)
            continue
        comma = text.find(",", place)
        end = _matching(text, entry.end() - 1, where)
        place = comma + 1 if 0 <= comma < end else end
        while place < end and (name := NAME.match(text, place, end)) is not None:
            value, place = _value(text, name.end(), end, where)
            if name[1].lower() == field.lower():
                yield plain_text(value)
        place = end


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _matching(text: str, start: int, where: str) -> int:
    """The place after the bracket that closes the one at `start`; braces nest, and quotes may hold a round one."""
    opened, closing = text[start], {"{": "}", "(": ")"}[text[start]]
    depth, place = 0, start
    while (sign := SIGN.search(text, place)) is not None:
        letter, place = sign[0], sign.end()
        if letter == '"' and opened == "(" and depth == 1:
            place = _closing_quote(text, sign.start(), len(text), where)
        elif letter == "{" or (letter == opened and depth == 0):
            depth += 1
        elif letter == "}" or (letter == closing and depth == 1):
            depth -= 1
            if depth == 0:
                return place
    raise DataError(f"{where}: line {_line(text, start)}: the '{opened}' that opens here is never closed.")


def _value(text: str, place: int, end: int, where: str) -> tuple[str, int]:
    """A field's value and the place after it; parts joined by `#` are put together."""
    parts = []
    while place < end:
        if text[place] == "{":
            after = _matching(text, place, where)
            parts.append(text[place + 1 : after - 1])
        elif text[place] == '"':
            after = _closing_quote(text, place, end, where)
            parts.append(text[place + 1 : after - 1])
        else:
            bare = BARE.match(text, place, end)
            after = bare.end() if bare else place
            parts.append(text[place:after])
        joint = JOINT.match(text, after, end)
        if joint is None:
            return "".join(parts), max(after, place + 1)
        place = joint.end()
    return "".join(parts), place


def _closing_quote(text: str, start: int, end: int, where: str) -> int:
    depth, place = 0, start + 1
    while (sign := SIGN.search(text, place, end)) is not None:
        letter, place = sign[0], sign.end()
        if letter == '"' and depth == 0:
            return place
        depth += {"{": 1, "}": -1}.get(letter, 0)
    raise DataError(f"{where}: line {_line(text, start)}: the quotation mark that opens here is never closed.")


def plain_text(latex: str) -> str:
    """LaTeX as it would be printed: accents composed, commands and braces gone."""

    def accented(found: re.Match[str]) -> str:
        letter, accent = found["braced"] or found["bare"], found["sign"] or found["name"]
        return unicodedata.normalize("NFC", letter + ACCENTS[accent])

    def command(found: re.Match[str]) -> str:
        return LETTERS.get(found[1], "")

    text = re.sub(r"(?<!\\)%.*\n\s*", "", latex)
    text = ACCENTED.sub(accented, text)
    text = re.sub(r"\\([A-Za-z]+)\*?\s*", command, text)
    text = re.sub(r"\\([&%$#_{}])", r"\1\0", text)
    text = re.sub(r"[{}$](?!\0)", "", text).replace("\0", "")
    text = re.sub(r"\\[,;:! ]", " ", text).replace("\\", "").replace("~", " ")
    text = text.replace("---", "—").replace("--", "–").replace("``", "“").replace("''", "”")
    return " ".join(text.split())
