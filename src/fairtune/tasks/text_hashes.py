"""Texts as hashes: to place them in a split for ever, and to find those that occur twice."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import regex

Hashes = npt.NDArray[np.uint64]
BETWEEN = "\2"
"""Stands between the two texts of a pair."""
_not_a_word = regex.compile(r"[\p{P}\p{S}\p{Z}\p{C}]+")
_ascii_words = {code: " " for code in range(128) if not chr(code).isalnum()}
_digits_apart, _not_between_digits = re.compile(r"\d \d"), re.compile(r"(?<!\d) | (?!\d)")


def unit_hash(text: str) -> float:
    """A number in [0, 1) that depends on nothing but the text."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64


def normal_form(text: str) -> str:
    """The text without case, punctuation, symbols and spacing; a text of nothing else stays as it is.

    `don't` and a tokenizer's `do n't` are the same, and so are `3-2` and `3:2`; but 32 is not, so digits stay apart.
    """
    if text.isascii():  # the same, several times faster
        words = text.lower().translate(_ascii_words)
    else:
        words = _not_a_word.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    words = " ".join(words.split())
    joined = _not_between_digits.sub("", words) if _digits_apart.search(words) else words.replace(" ", "")
    return joined or text.strip()


def exact_and_normal(texts: Iterable[Sequence[str]]) -> tuple[Hashes, Hashes]:
    """64 bits for each example as it is, and for its normal form; equal bits of different texts are as good as impossible."""
    exact, normal = [], []
    for example in texts:
        exact.append(_digest(BETWEEN.join(example)))
        normal.append(_digest(BETWEEN.join(map(normal_form, example))))
    return np.frombuffer(b"".join(exact), dtype="<u8"), np.frombuffer(b"".join(normal), dtype="<u8")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
