"""Token blocks: a corpus as one flat stream of tokens on disk, written once, mapped into memory where it is read.

Each document is followed by the tokenizer's end-of-text token (EOS). Where the tokenizer itself begins a text with another token
(BOS), as Llama's does, each document begins with that. What looks like a special token inside a document is split like any other
text, so that EOS and BOS always mean the edge of a document.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached, key_of
from fairtune.core.errors import DataError
from fairtune.core.stages import stage
from fairtune.settings.sections import Train
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.corpora import METRIC, Corpus
from fairtune.tasks.task import SPLITS, TaskFacts
from fairtune.tasks.tokens.tokenization import (
    TokenizerFolder,
    encoder,
    mapped,
    token_dtype,
    tokenizer_identity,
)

VERSION = 4
"""Raised whenever the same documents would give another file."""
FILE, SIZES = "tokens.bin", "documents.bin"
SIZE = np.dtype("<u4")
TOGETHER = 500
"""Documents that are tokenised at once."""
Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


@dataclass(frozen=True)
class TextCounts:
    """What a stream holds.

    Args:
        documents: those of which at least one token is in the stream.
        tokens: with one EOS after each document, and one BOS before it where the tokenizer has that.
        bytes: of the documents' text in UTF-8, without what stands for EOS.
        words: of the documents' text, separated by white space.
        cut: whether the last document was cut where the tokens asked for ended; its text counts as far as it goes.
    """

    documents: int = 0
    tokens: int = 0
    bytes: int = 0
    words: int = 0
    cut: bool = False


@dataclass(frozen=True, eq=False)
class TokenBlocks:
    """A split as tokens.

    Args:
        where: corpus and split, for messages.
        stream: all tokens, read-only, on disk until they are looked at.
        documents: for each document its tokens (with EOS and BOS), bytes and words, as `counts` has their sums.
        bos: what each document begins with, if anything.
    """

    where: str
    folder: Path
    stream: Tokens
    documents: npt.NDArray[np.uint32]
    counts: TextCounts
    eos: int
    bos: int | None = None

    def blocks(self, length: int) -> Tokens:
        """The stream as rows of so many tokens, for training; not a copy. The rest that does not fill a row is left out.

        Raises:
            DataError: there is not one whole row.
        """
        rows = len(self.stream) // length
        if not rows:
            raise DataError(
                f"{self.where}: {len(self.stream):,} tokens are less than one block of {length:,}; give more text or "
                "use shorter blocks (max_length)."
            )
        return self.stream[: rows * length].reshape(rows, length)

    @property
    def edges(self) -> int:
        """Tokens of a document that are not its text: EOS, and BOS where there is one."""
        return 1 if self.bos is None else 2

    @cached_property
    def is_text(self) -> npt.NDArray[np.bool_]:
        """Which tokens of the stream stand for text, and not for the edge of a document; none of its documents is cut."""
        found, ends = np.ones(len(self.stream), bool), np.cumsum(self.documents[:, 0], dtype=np.int64)
        found[ends - 1] = False
        if self.bos is not None:
            found[ends - self.documents[:, 0]] = False
        return found

    def spans(self, length: int) -> list[tuple[int, int]]:
        """Where windows of at most so many tokens begin and end in the stream, so that every token of the text is in one of them.

        A window holds whole documents, as many as fit, so that no text begins without its beginning; only a document that is longer
        than a window goes on in the next.
        """
        found, first = [], 1 if self.bos is not None else 0
        start, end = first, 0
        for size in self.documents[:, 0].tolist():
            begin, end = end, end + size
            if end - start > length and start < begin:
                found.append((start, begin))
                start = begin + first
            while end - start > length:
                found.append((start, start + length))
                start += length
        return [*found, (start, end)]

    def window(self, start: int, end: int) -> tuple[Tokens, Tokens]:
        """Inputs and targets of a span: each target is to be predicted from the inputs up to the one at its own place.

        A document's first token is predicted from the EOS before it, or from its BOS; before the first document stands an EOS too.
        """
        targets = self.stream[start:end]
        if start:
            return self.stream[start - 1 : end - 1], targets
        return np.concatenate([np.array([self.eos], self.stream.dtype), targets[:-1]]), targets

    def windows(self, length: int) -> Iterator[tuple[Tokens, Tokens]]:
        """Inputs and targets of at most so many tokens, for scoring: every token of the text is a target exactly once, in order."""
        for start, end in self.spans(length):
            yield self.window(start, end)


@dataclass(frozen=True)
class TextTask:
    """A corpus with the tokenizer that makes tokens of it: what a study trains on and reports."""

    corpus: Corpus
    tokenizer: TokenizerFolder

    def blocks(self, split: str, train: Train) -> TokenBlocks:
        """A split as tokens, from the cache where they are in it; of the training split as many as the settings say."""
        limit = train.tokens if split == "train" else None
        return token_blocks(self.corpus, split, self.tokenizer.load(), limit)

    def examples(self, train: Train) -> int:
        """How many blocks there are to train on.

        Raises:
            DataError: not one, or there is nothing to validate on or to report.
        """
        for split in ("validation", "test"):
            self.blocks(split, train)
        return len(self.blocks("train", train).blocks(train.longest))

    @property
    def fingerprint(self) -> str:
        """The identity of every document of every split."""
        return key_of([LANGUAGE_MODEL, *(self.corpus.identity(split) for split in SPLITS)])

    def facts(self, train: Train) -> TaskFacts:
        """What a plan records, with the counts that an arm of these settings has."""
        counts = {split: asdict(self.blocks(split, train).counts) for split in SPLITS}
        return TaskFacts(
            name=self.corpus.name,
            kind=LANGUAGE_MODEL,
            metric=METRIC,
            labels=(),
            rows={split: int(found["documents"]) for split, found in counts.items()},
            source=self.corpus.source,
            fingerprint=self.fingerprint,
            hashes={split: self.corpus.identity(split) for split in SPLITS},
            counts=counts,
        )


def token_blocks(corpus: Corpus, split: str, tokenizer: Any, tokens: int | None = None) -> TokenBlocks:
    """A split of a corpus as tokens, from the cache where they are in it.

    Args:
        tokenizer: of transformers.
        tokens: stop after exactly so many, even within a document; None takes all.

    Raises:
        DataError: the tokenizer has no EOS, there is no text, or it cannot be read.
    """
    where = f"task '{corpus.name}', {split} split"
    if tokenizer.eos_token_id is None:
        raise DataError(
            f"{where}: the tokenizer has no end-of-text token (EOS), which stands between documents; use the tokenizer of "
            "a causal language model, or set its `eos_token`."
        )
    eos, bos, dtype = int(tokenizer.eos_token_id), _bos(tokenizer), token_dtype(tokenizer)
    whole = copy.copy(tokenizer)
    whole.split_special_tokens = True  # to it, nothing in a text is special
    key = key_of([VERSION, corpus.identity(split), tokenizer_identity(whole), eos, bos, tokens])

    def build(folder: Path) -> None:
        sizes = _write(folder / FILE, corpus, split, whole, bos, dtype, tokens)
        if not len(sizes):
            raise DataError(f"{where}: there is no text in it ({corpus.source}); every document is blank or held out.")
        sizes.astype(SIZE).tofile(folder / SIZES)

    def read(folder: Path) -> TokenBlocks:
        sizes = np.memmap(folder / SIZES, SIZE, mode="r").reshape(-1, 3)
        held, size, words = sizes.sum(axis=0, dtype=np.int64).tolist()
        stream = mapped(folder / FILE, dtype, held)
        counts = TextCounts(len(sizes), held, size, words, cut=bool(stream[-1] != eos))
        return TokenBlocks(where, folder, stream, sizes, counts, eos, bos)

    return cached("blocks", key, build, read)


def _write(
    file: Path, corpus: Corpus, split: str, tokenizer: Any, bos: int | None, dtype: np.dtype[Any], limit: int | None
) -> npt.NDArray[np.int64]:
    """Write the stream; returns tokens, bytes and words of each document."""
    encode = encoder(tokenizer, None, pair=False, special=False)
    before = [] if bos is None else [bos]
    texts, batch, found, total = chain.from_iterable(corpus.documents(split)), [""], [np.zeros((0, 3), np.int64)], 0
    with file.open("wb") as sink, stage(f"tokenising documents of the {split} text") as advance:
        while (limit is None or total < limit) and (read := list(islice(texts, TOGETHER))):
            batch, piece = read, encode([read])
            ends = np.cumsum(piece.lengths)
            edges = np.stack([*([ends - piece.lengths] * len(before)), ends], axis=1)
            stream = np.insert(piece.tokens, edges.ravel(), [*before, tokenizer.eos_token_id] * len(batch))
            sink.write(stream.astype(dtype).data)
            found.append(np.stack([piece.lengths + edges.shape[1], *_text_sizes(batch)], axis=1))
            total += len(stream)
            advance(len(batch))
    sizes = np.concatenate(found)
    if limit is None or total <= limit:
        return sizes
    os.truncate(file, limit * dtype.itemsize)
    starts = np.cumsum(sizes[:, 0]) - sizes[:, 0]
    kept = int(np.searchsorted(starts, limit))
    left, last = limit - int(starts[kept - 1]), batch[kept - 1 - len(starts)]
    sizes = sizes[:kept]
    if left < sizes[-1, 0]:
        sizes[-1] = left, *np.ravel(_text_sizes([_covered(last, left - len(before), tokenizer)]))
    return sizes


def _text_sizes(texts: list[str]) -> tuple[list[int], list[int]]:
    """Bytes and words of each."""
    return [len(text.encode()) for text in texts], [len(text.split()) for text in texts]


def _bos(tokenizer: Any) -> int | None:
    """The token that the tokenizer itself puts before a text, unless that is its EOS."""
    bos = tokenizer.bos_token_id
    begins = bos is not None and bos != tokenizer.eos_token_id and tokenizer("a")["input_ids"][:1] == [bos]
    return int(bos) if begins else None


def _covered(text: str, tokens: int, tokenizer: Any) -> str:
    """The beginning of a text that its first tokens stand for; a character that is cut in two is not part of it."""
    if not tokenizer.is_fast:
        raise DataError("tokens: this tokenizer cannot tell which token stands for which text; leave `tokens` out.")
    if tokens < 1:
        return ""
    places = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    return text if tokens >= len(places) else text[: min(places[tokens - 1][1], places[tokens][0])]
