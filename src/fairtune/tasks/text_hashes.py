"""Hashes of texts, by which examples are placed in splits and found again: many at a time, the same bits for ever.

What counts when two texts are compared is their normal form. It is made of many texts at once: of ASCII by translating bytes, of
all else by looking up every character in one table.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

Hashes = npt.NDArray[np.uint64]
PAIR_SEPARATOR = "\2"
"""Stands between the two texts of a pair."""
TOGETHER = 2000
"""Texts that are hashed at once."""
LONG = 1 << 16
"""Bytes of a text that is long enough to be looked at alone."""
_not_a_word = regex.compile(r"[\p{P}\p{S}\p{Z}\p{C}]+")
_digits_apart, _not_between_digits = re.compile(r"\d \d"), re.compile(r"(?<!\d) | (?!\d)")
_digits_around_gap = re.compile(rb"0 ++0")
_ascii_words = {code: " " for code in range(128) if not chr(code).isalnum()}
_not_ascii_words, _lower = bytes(_ascii_words), bytes(range(256)).lower()
_ascii_kinds = bytes(
    ord("0" if chr(c) in "0123456789" else "a" if c > 127 or chr(c).isalnum() else " ") for c in range(256)
)
"""A digit, a letter or neither, for each byte of ASCII."""
_OTHER, _LETTER, _DIGIT = 1, 2, 3
_kinds = np.zeros(0x110000, dtype=np.uint8)
"""What each character is; 0 where nobody asked yet, since to ask for all of Unicode takes half a second."""


def unit_hash(text: str) -> float:
    """A number in [0, 1) that depends on nothing but the text."""
    return float(unit_hashes([text])[0])


def unit_hashes(texts: Iterable[str | bytes]) -> npt.NDArray[np.float64]:
    """The number in [0, 1) of each text, which may be in UTF-8 already."""
    digest_of = hashlib.sha256
    encoded = (one if isinstance(one, bytes) else _encoded(one) for one in texts)
    digests = b"".join([digest_of(one).digest()[:8] for one in encoded])
    # A division by a power of two is exact, so that the only rounding is that of 64 bits to a float, as Python does it.
    return np.frombuffer(digests, dtype=">u8").astype(np.float64) / 2.0**64


def normal_form(text: str) -> str:
    """The text without case, punctuation, symbols and spacing; a text of nothing else stays as it is.

    `don't` and a tokenizer's `do n't` are the same, and so are `3-2` and `3:2`; but 32 is not, so digits stay apart.
    """
    words = text.lower().translate(_ascii_words) if text.isascii() else _not_a_word.sub(" ", _folded(text))
    words = " ".join(words.split())
    joined = _not_between_digits.sub("", words) if _digits_apart.search(words) else words.replace(" ", "")
    return joined or text.strip()


def exact_and_normal(texts: Iterable[Sequence[str]]) -> tuple[Hashes, Hashes]:
    """64 bits for each example as it is, and for its normal form; equal bits of different texts are as good as impossible."""
    found: list[tuple[Hashes, Hashes]] = [(_digests([]), _digests([]))]
    left = iter(texts)
    while examples := list(islice(left, TOGETHER)):
        found.append(hash_columns([[_encoded(text) for text in column] for column in zip(*examples, strict=True)]))
    exact, normal = zip(*found, strict=True)
    return np.concatenate(exact), np.concatenate(normal)


def hash_columns(columns: Sequence[Sequence[bytes]]) -> tuple[Hashes, Hashes]:
    """The same of examples whose texts are given in UTF-8, by column."""
    return _digests(_joined(columns)), _digests(_joined([_normal_forms(column) for column in columns]))


def _joined(columns: Sequence[Sequence[bytes]]) -> Iterable[bytes]:
    return columns[0] if len(columns) == 1 else map(PAIR_SEPARATOR.encode().join, zip(*columns, strict=True))


def _digests(encoded: Iterable[bytes]) -> Hashes:
    digest_of = hashlib.blake2b
    return np.frombuffer(b"".join([digest_of(one, digest_size=8).digest() for one in encoded]), dtype="<u8")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _normal_forms(encoded: Sequence[bytes]) -> list[bytes]:
    """What `normal_form` makes of each text, in UTF-8."""
    forms = [one.translate(_lower, _not_ascii_words) for one in encoded]
    ends = np.cumsum([len(one) + 1 for one in encoded])
    apart = _digits_around_gap.finditer(b"\xff".join(encoded).translate(_ascii_kinds))
    for place in np.searchsorted(ends, [found.start() for found in apart], side="right").tolist():
        forms[place] = b""
    others = []
    for place in [place for place, one in enumerate(encoded) if not one.isascii()]:
        if len(encoded[place]) < LONG:
            others.append(place)
        else:
            forms[place] = b""
    for first in range(0, len(others), TOGETHER):
        some = others[first : first + TOGETHER]
        for place, form in zip(some, _unicode_forms([encoded[place] for place in some]), strict=True):
            forms[place] = form
    for place in [place for place, form in enumerate(forms) if not form]:
        forms[place] = _encoded(normal_form(encoded[place].decode("utf-8", "surrogatepass")))
    return forms


def _unicode_forms(encoded: Sequence[bytes]) -> list[bytes]:
    """Each text without what is no word; nothing for those with digits apart, where that is not enough."""
    folded = [_folded(one.decode("utf-8", "surrogatepass")) for one in encoded]
    codes = np.frombuffer("".join(folded).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _kinds_of(codes)
    ends = np.cumsum([len(text) for text in folded])
    kept = np.flatnonzero(kinds != _OTHER)
    joined = codes[kept].tobytes().decode("utf-32-le", "surrogatepass")
    bounds = np.searchsorted(kept, ends).tolist()
    forms = [_encoded(joined[low:high]) for low, high in zip([0, *bounds], bounds, strict=False)]
    digit = kinds[kept] == _DIGIT
    gaps = np.flatnonzero(digit[:-1] & digit[1:] & (np.diff(kept) > 1))
    for row in np.unique(np.searchsorted(ends, kept[gaps], side="right")).tolist():
        forms[row] = b""
    return forms


def _kinds_of(codes: Any) -> Any:
    """What each character is: a letter or the like, a digit, or neither."""
    for code in np.unique(codes[_kinds[codes] == 0]).tolist():
        word = _DIGIT if chr(code).isdecimal() else _LETTER
        _kinds[code] = _OTHER if _not_a_word.match(chr(code)) else word
    return _kinds[codes]
