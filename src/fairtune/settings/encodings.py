"""How files of text may be encoded: any encoding that Python knows, by any of its names."""

from __future__ import annotations

import codecs
from encodings.aliases import aliases

from fairtune.core.errors import FairtuneError, nearest

READ_AS = {"utf-8": "utf-8-sig", "iso8859-1": "cp1252", "shift_jis": "cp932", "euc_kr": "cp949"}
"""Each by what holds all of it and more. Files that are called latin-1 nearly always are windows-1252, and its quotes and dashes
would be control characters."""


def codec_of(name: str) -> str:
    """What Python calls an encoding.

    Raises:
        FairtuneError: it knows none of that name, or one that is not for text.
    """
    spelt = name.lower().replace("latin-", "latin")  # Python knows latin-1, but no latin-9
    try:
        "".encode(spelt)
    except (LookupError, ValueError):
        hint = nearest(spelt, [alias for alias in aliases if alias != spelt])  # hex has a codec, though not for text
        raise FairtuneError(
            f"unknown encoding '{name}'; allowed: those of Python, such as utf-16 or cp1252.{hint}"
        ) from None
    known = codecs.lookup(spelt).name
    return READ_AS.get(known, known)
