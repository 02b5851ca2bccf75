"""Texts to tokens, a batch at a time: the `tokenizers` library spreads each over the cores."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import content_hash
from fairtune.tasks.task import Texts

BATCH = 1000
TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")


@dataclass(frozen=True)
class Piece:
    """Some examples as tokens, one after the other.

    Args:
        types: token_type_ids where the model has them and the examples are pairs.
    """

    tokens: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.int64]
    types: npt.NDArray[np.int8] | None


@dataclass(frozen=True)
class TokenizerFolder:
    """A tokenizer in a folder, to be loaded only where its answers are not in the cache: loading one takes seconds.

    Args:
        load: loads it, checked.
    """

    folder: Path
    load: Callable[[], Any]

    def identity(self) -> list[str]:
        """What decides the tokenizer's answers, found without loading it: its files, and the libraries that read them."""
        files = sorted({file for pattern in TOKENIZER_FILES for file in self.folder.glob(pattern)})
        versions = [f"{name} {importlib.metadata.version(name)}" for name in ("tokenizers", "transformers")]
        return [*versions, *(f"{file.name} {content_hash(file)}" for file in files)]


def tokenize(texts: Sequence[Texts], tokenizer: Any, max_length: int | None = None) -> Iterator[Piece]:
    """Examples as tokens, in pieces.

    Args:
        tokenizer: of transformers.
        max_length: longer examples are cut, pairs longest first; None cuts nothing.
    """
    encode = encoder(tokenizer, max_length, pair=len(texts) > 0 and len(texts[0]) == 2)
    for start in range(0, len(texts), BATCH):
        yield encode([list(column) for column in zip(*texts[start : start + BATCH], strict=True)])


def encoder(
    tokenizer: Any, max_length: int | None, pair: bool, special: bool = True
) -> Callable[[Sequence[list[str]]], Piece]:
    """What tokenises columns of texts, as often as it is called.

    Args:
        special: add the special tokens that the model expects.
    """
    typed, inner, cut = pair and "token_type_ids" in tokenizer.model_input_names, None, {}
    if getattr(tokenizer, "is_fast", False):
        inner = _inner(tokenizer)
        inner.encode_special_tokens = bool(tokenizer.split_special_tokens)
        if max_length is not None:
            inner.enable_truncation(max_length, strategy="longest_first", direction=tokenizer.truncation_side)
    elif max_length is not None:
        cut = {"truncation": "longest_first", "max_length": max_length}

    def encode(columns: Sequence[list[str]]) -> Piece:
        if inner is None:
            found = tokenizer(*columns, add_special_tokens=special, verbose=False, **cut)
            ids, types = found["input_ids"], found["token_type_ids"] if typed else None
        else:
            texts: list[Any] = list(zip(*columns, strict=True)) if pair else columns[0]
            encoded = inner.encode_batch_fast(texts, add_special_tokens=special)
            ids, types = [one.ids for one in encoded], [one.type_ids for one in encoded] if typed else None
        return Piece(
            np.frombuffer(array("I", itertools.chain.from_iterable(ids)), np.uint32),
            np.fromiter(map(len, ids), np.int64, len(ids)),
            None if types is None else np.frombuffer(array("b", itertools.chain.from_iterable(types)), np.int8),
        )

    return encode


def tokenizer_identity(tokenizer: Any) -> str:
    """sha256 of what decides a tokenizer's answers."""
    if getattr(tokenizer, "is_fast", False):
        core: Any = _inner(tokenizer).to_str()
    else:
        core = [
            type(tokenizer).__name__,
            sorted(tokenizer.get_vocab().items()),
            repr(sorted(tokenizer.init_kwargs.items())),
        ]
    facts = [core, tokenizer.truncation_side, tokenizer.split_special_tokens, list(tokenizer.model_input_names)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def token_dtype(tokenizer: Any) -> np.dtype[Any]:
    """Two bytes per token where the vocabulary fits, else four; the lowest byte first."""
    return np.dtype("<u2" if max(tokenizer.get_vocab().values()) < 1 << 16 else "<u4")


def mapped(file: Path, dtype: np.dtype[Any], size: int) -> Any:
    """Numbers in a file, mapped into memory, which processes share.

    Raises:
        ValueError: the file does not hold so many.
    """
    if file.stat().st_size != size * dtype.itemsize:
        raise ValueError(f"{file} is not whole")
    return np.memmap(file, dtype, mode="r") if size else np.empty(0, dtype)


def _inner(tokenizer: Any) -> Any:
    """A copy of the tokenizer of the `tokenizers` library, free of what earlier calls left set."""
    from tokenizers import Tokenizer

    copy = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy
