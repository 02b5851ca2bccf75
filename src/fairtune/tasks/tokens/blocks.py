"""Token blocks: a corpus as one flat stream of tokens on disk, written once, mapped into memory by whoever reads it.

Each document is followed by the tokenizer's end-of-text token (EOS). Where the tokenizer itself begins a text with another token
(BOS), as Llama's does, each document begins with that. What looks like a special token inside a document is split like any other
text, so that EOS and BOS always mean the edge of a document.
"""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached, key_of
from fairtune.core.errors import DataError
from fairtune.core.files import write_json
from fairtune.core.stages import stage
from fairtune.tasks.corpora import Corpus
from fairtune.tasks.task import Texts
from fairtune.tasks.tokens.encoder import Piece
from fairtune.tasks.tokens.tokenization import tokenize, tokenizer_identity

VERSION = 3
"""Raised whenever the same documents would give another file."""
FILE, SIZES, FACTS = "tokens.bin", "documents.bin", "blocks.json"
SIZE = np.dtype("<u4")
BATCH_DOCUMENTS, BATCH_CHARACTERS = 1000, 1 << 18
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

    def plus(self, text: str, tokens: int, cut: bool = False) -> TextCounts:
        return TextCounts(
            self.documents + 1,
            self.tokens + tokens,
            self.bytes + len(text.encode()),
            self.words + len(text.split()),
            cut,
        )


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


def token_blocks(
    corpus: Corpus,
    split: str,
    tokenizer: Any,
    tokens: int | None = None,
    check_stop: Callable[[], None] = lambda: None,
) -> TokenBlocks:
    """A split of a corpus as tokens, from the cache where they are in it.

    Args:
        tokenizer: of transformers.
        tokens: stop after exactly so many, even within a document; None takes all.
        check_stop: called again and again, so that a long job can be stopped.

    Raises:
        DataError: the tokenizer has no EOS, there is no text, or it cannot be read.
    """
    where = f"task '{corpus.name}', {split} split"
    if tokenizer.eos_token_id is None:
        raise DataError(
            f"{where}: the tokenizer has no end-of-text token (EOS), which stands between documents; use the tokenizer of "
            "a causal language model, or set its `eos_token`."
        )
    eos, bos, whole, dtype = int(tokenizer.eos_token_id), _bos(tokenizer), _whole(tokenizer), _dtype(tokenizer)
    key = key_of([VERSION, corpus.identity(split), tokenizer_identity(whole), eos, bos, dtype.str, tokens])

    def build(folder: Path) -> None:
        counts = _write(folder, corpus, split, whole, tokens, check_stop, dtype, bos)
        if not counts.documents:
            raise DataError(f"{where}: there is no text in it ({corpus.source}); every document is blank or held out.")
        write_json(
            folder / FACTS, {**asdict(counts), "dtype": dtype.str, "eos": eos, "corpus": corpus.name, "split": split}
        )

    def read(folder: Path) -> TokenBlocks:
        facts = json.loads((folder / FACTS).read_bytes())
        counts = TextCounts(**{name: facts[name] for name in asdict(TextCounts())})
        sizes = np.memmap(folder / SIZES, SIZE, mode="r", shape=(counts.documents, 3))
        stream = np.memmap(folder / FILE, dtype, mode="r", shape=(counts.tokens,))
        return TokenBlocks(where, folder, stream, sizes, counts, eos, bos)

    return cached("blocks", key, build, read, check_stop)


def _write(
    folder: Path,
    corpus: Corpus,
    split: str,
    tokenizer: Any,
    limit: int | None,
    check_stop: Callable[[], None],
    dtype: Any,
    bos: int | None,
) -> TextCounts:
    counts, waiting = TextCounts(), deque[str]()
    documents = cast("Generator[list[str]]", corpus.documents(split))
    pieces = tokenize(_batches(documents, waiting), tokenizer, special=False, check_stop=check_stop)
    with (
        (folder / FILE).open("wb") as sink,
        (folder / SIZES).open("wb") as sizes,
        closing(documents),
        closing(cast("Generator[Piece]", pieces)),
        stage(f"tokenising documents of the {split} text") as advance,
    ):
        for piece in pieces:
            advance(len(piece.lengths))
            stream = _joined(piece, tokenizer.eos_token_id, bos).astype(dtype)
            before, found = counts.tokens, [counts]
            for length in piece.lengths.tolist():
                first = 0 if bos is None else 1
                size = first + length + 1
                text, left = waiting.popleft(), size if limit is None else limit - counts.tokens
                if left < size:
                    counts = counts.plus(_covered(text, left - first, tokenizer), left, cut=True)
                else:
                    counts = counts.plus(text, size)
                found.append(counts)
                if counts.tokens == limit:
                    break
            sink.write(stream[: counts.tokens - before].data)
            sizes.write(np.diff([(c.tokens, c.bytes, c.words) for c in found], axis=0).astype(SIZE).data)
            if counts.tokens == limit:
                break
    return counts


def _joined(piece: Piece, eos: int, bos: int | None) -> npt.NDArray[Any]:
    """The tokens of documents with what stands at their edges."""
    ends = np.cumsum(piece.lengths)
    if bos is None:
        return np.insert(piece.tokens, ends, eos)
    places = np.stack([ends - piece.lengths, ends], axis=1).ravel()
    return np.insert(piece.tokens, places, np.tile([bos, eos], len(ends)))


def _bos(tokenizer: Any) -> int | None:
    """The token that the tokenizer itself puts before a text, unless that is its EOS."""
    bos = tokenizer.bos_token_id
    begins = bos is not None and bos != tokenizer.eos_token_id and tokenizer("a")["input_ids"][:1] == [bos]
    return int(bos) if begins else None


def _batches(chunks: Iterator[list[str]], waiting: deque[str]) -> Iterator[list[Texts]]:
    """Batches of an even size, whatever the chunks; each document is also put in the queue."""
    batch: list[Texts] = []
    size = 0
    for chunk in chunks:
        for text in chunk:
            waiting.append(text)
            batch.append((text,))
            size += len(text)
            if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_CHARACTERS:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _covered(text: str, tokens: int, tokenizer: Any) -> str:
    """The beginning of a text that its first tokens stand for; a character that is cut in two is not part of it."""
    if not tokenizer.is_fast:
        raise DataError("tokens: this tokenizer cannot tell which token stands for which text; leave `tokens` out.")
    places = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    if tokens < 1:
        return ""
    if tokens >= len(places):
        return text
    return text[: min(places[tokens - 1][1], places[tokens][0])]


def _whole(tokenizer: Any) -> Any:
    """The tokenizer, to which nothing in a text is special."""
    same = copy.copy(tokenizer)
    same.split_special_tokens = True
    return same


def _dtype(tokenizer: Any) -> np.dtype[Any]:
    """Two bytes per token where the vocabulary fits, else four; the lowest byte first."""
    largest = max(tokenizer.get_vocab().values())
    return np.dtype("<u2" if largest < 1 << 16 else "<u4")
