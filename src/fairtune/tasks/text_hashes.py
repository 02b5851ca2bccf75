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
_ends = " \t\n\r\v\f\x1c\x1d\x1e\x1f"
"""What Python strips of ASCII."""
_no_words = bytes(code for code in range(128) if not chr(code).isalnum())
_words_apart = bytes.maketrans(_no_words, b" " * len(_no_words))
_more_to_part = re.compile(r"[^\w\x00-\x7f]")


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
    return _units(text.encode("utf-8", "surrogatepass") for text in texts)


def _units(texts: Iterable[bytes]) -> npt.NDArray[np.float64]:
    digests = b"".join([hashlib.sha256(text).digest()[:8] for text in texts])
    # A division by a power of two is exact, so that the only rounding is that of 64 bits to a float, as Python does it.
    return np.frombuffer(digests, dtype=">u8").astype(np.float64) / 2.0**64


def place_hashes(columns: Sequence[Any]) -> npt.NDArray[np.float64]:
    """The number of each example that decides its split: the same whatever the case and the spaces around its texts.

    Args:
        columns: Arrow's arrays of the texts; one that is missing is as an empty one.
    """
    return _units(_joined([_alike(column) for column in columns]))


def _alike(column: Any) -> list[bytes]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.fill_null(column.cast(pa.large_string()), "")
    found: list[bytes] = pc.ascii_trim(pc.ascii_lower(texts), _ends).cast(pa.large_binary()).to_pylist()
    others = pc.invert(pc.string_is_ascii(texts))
    for row, text in zip(pc.indices_nonzero(others).to_pylist(), texts.filter(others).to_pylist(), strict=True):
        found[row] = text.strip().lower().encode()
    return found


def normal_form(text: str) -> str:
    """The text without case, punctuation, symbols and spacing; a text of nothing else stays as it is.

    `don't` and a tokenizer's `do n't` are the same, and so are `3-2` and `3:2`; but 32 is not, so digits stay apart.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().encode().translate(_words_apart).decode()
    words = " ".join((folded.translate(_words) if _more_to_part.search(folded) else folded).split())
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
    return np.fromiter(map(xxhash.xxh3_64_intdigest, _joined(columns)), np.uint64, len(columns[0]))


def _joined(columns: Sequence[Sequence[bytes]]) -> Iterable[bytes]:
    """Each example's text, or the two of a pair as one."""
    return columns[0] if len(columns) == 1 else map(PAIR_SEPARATOR.encode().join, zip(*columns, strict=True))
