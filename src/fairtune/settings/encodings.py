"""How files of text may be encoded, by the names that a user writes."""

from __future__ import annotations

from fairtune.core.errors import FairtuneError, nearest, one_of

ENCODINGS = {
    "utf-8": "utf-8-sig",
    "utf-16": "utf-16",
    "utf-16-le": "utf-16-le",
    "utf-16-be": "utf-16-be",
    "windows-1252": "cp1252",
    "latin-1": "cp1252",
    "latin-9": "iso8859-15",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "koi8-r": "koi8-r",
    "gb18030": "gb18030",
    "big5": "big5",
    "shift-jis": "cp932",
    "euc-jp": "euc-jp",
    "euc-kr": "cp949",
}
"""What Python calls each. `latin-1` is read as windows-1252, as browsers do: who writes the former nearly always has the latter,
and its quotes and dashes would be control characters."""
WESTERN = "windows-1252"


def codec_of(name: str, called: str = "encoding") -> str:
    """What Python calls an encoding.

    Raises:
        FairtuneError: it is none of those that are known.
    """
    folded = name.strip().lower().replace("_", "-")
    found = {"utf8": "utf-8", "utf16": "utf-16", "latin1": "latin-1", "iso-8859-1": "latin-1", "cp1252": WESTERN}
    folded = found.get(folded, folded)
    if folded not in ENCODINGS:
        raise FairtuneError(f"{called} {name}: unknown; allowed: {one_of(ENCODINGS)}.{nearest(folded, ENCODINGS)}")
    return ENCODINGS[folded]
