"""Hashes of texts: by one, whose bits stay for ever, examples are placed in splits; by the others they are found again."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

Hashes = npt.NDArray[np.uint64]
PAIR_SEPARATOR = "\2"
"""Stands between the two texts of a pair."""
_digits_apart, _not_between_digits = re.compile(r"\d \d"), re.compile(r"(?<!\d) | (?!\d)")
_lower = bytes(range(256)).lower()
_no_words = bytes(code for code in range(128) if not chr(code).isalnum())


class _Words(dict[int, str]):
    """Characters that are part of words, and a space for each other one; filled as they occur."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = " " if unicodedata.category(character)[0] in "PSZC" else character
        return self[code]


_words = _Words()


def unit_hash(text: str) -> float:
    """A number in [0, 1) that depends on nothing but the text."""
    return float(unit_hashes([text])[0])


def unit_hashes(texts: Iterable[str]) -> npt.NDArray[np.float64]:
    """The number in [0, 1) of each text."""
    digests = b"".join([hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8] for text in texts])
    # A division by a power of two is exact, so that the only rounding is that of 64 bits to a float, as Python does it.
    return np.frombuffer(digests, dtype=">u8").astype(np.float64) / 2.0**64


def place_hashes(columns: Sequence[Sequence[str | None]]) -> npt.NDArray[np.float64]:
    """The number of each example that decides its split: the same whatever the case and the spaces around its texts."""
    alike = [[(text or "").strip().lower() for text in column] for column in columns]
    return unit_hashes(alike[0] if len(alike) == 1 else map(PAIR_SEPARATOR.join, zip(*alike, strict=True)))


def normal_form(text: str) -> str:
    """The text without case, punctuation, symbols and spacing; a text of nothing else stays as it is.

    `don't` and a tokenizer's `do n't` are the same, and so are `3-2` and `3:2`; but 32 is not, so digits stay apart.
    """
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_words).split())
    joined = _not_between_digits.sub("", words) if _digits_apart.search(words) else words.replace(" ", "")
    return joined or text.strip()


def exact_and_normal(columns: Sequence[Any]) -> tuple[Hashes, Hashes]:
    """64 bits for each example as it is, and for its normal form; equal bits of different texts are as good as impossible.

    Args:
        columns: Arrow's arrays of the texts, or of the first and the second ones of pairs.
    """
    import pyarrow as pa

    encoded = [column.cast(pa.large_binary()).to_pylist() for column in columns]
    return _digests(encoded), _digests(list(map(_normal_forms, columns, encoded)))


def _normal_forms(column: Any, encoded: list[bytes]) -> list[bytes]:
    """The normal form of each text; plain ASCII, unless it has digits apart, needs no table."""
    import pyarrow.compute as pc

    apart = pc.match_substring_regex(column, "[0-9][^0-9A-Za-z]+[0-9]")
    plain = pc.and_(pc.string_is_ascii(column), pc.invert(apart)).to_pylist()
    return [
        (one.translate(_lower, _no_words) if is_plain else b"") or normal_form(one.decode()).encode()
        for one, is_plain in zip(encoded, plain, strict=True)
    ]


def _digests(columns: Sequence[Sequence[bytes]]) -> Hashes:
    examples = columns[0] if len(columns) == 1 else map(PAIR_SEPARATOR.encode().join, zip(*columns, strict=True))
    return np.fromiter(map(xxhash.xxh3_64_intdigest, examples), np.uint64, len(columns[0]))
