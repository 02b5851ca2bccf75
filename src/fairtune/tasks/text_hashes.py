"""Hashes of texts, by which examples are placed in splits and found again: the same bits for ever."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
PAIR_SEPARATOR = "\2"
"""Stands between the two texts of a pair."""
_digits_apart, _not_between_digits = re.compile(r"\d \d"), re.compile(r"(?<!\d) | (?!\d)")
_ascii_digits_apart = re.compile(rb"[0-9][^0-9A-Za-z]+[0-9]")
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


def exact_and_normal(columns: Sequence[Iterable[str]]) -> tuple[Hashes, Hashes]:
    """64 bits for each example as it is, and for its normal form; equal bits of different texts are as good as impossible.

    Args:
        columns: the texts, or the first and the second ones of pairs.
    """
    encoded = [[text.encode("utf-8", "surrogatepass") for text in column] for column in columns]
    return _digests(encoded), _digests([list(map(_normal_bytes, column)) for column in encoded])


def _normal_bytes(encoded: bytes) -> bytes:
    """The normal form, for which plain ASCII needs no table."""
    plain = encoded.isascii() and not _ascii_digits_apart.search(encoded)
    form = encoded.translate(_lower, _no_words) if plain else b""
    return form or normal_form(encoded.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")


def _digests(columns: Sequence[Sequence[bytes]]) -> Hashes:
    examples = columns[0] if len(columns) == 1 else map(PAIR_SEPARATOR.encode().join, zip(*columns, strict=True))
    digests = [hashlib.blake2b(one, digest_size=8).digest() for one in examples]
    return np.frombuffer(b"".join(digests), dtype="<u8")
