"""Texts to tokens: in batches, by several processes where there is enough work, always in the order of the texts."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.tasks.task import Texts
from fairtune.tasks.tokens.tokenizer_process import Process

BATCH = 1000
FEW_CHARACTERS = 3_000_000
"""Work that is done before other processes would have started."""
MOST_PROCESSES = 16
AHEAD = 3
"""Batches in work for each process, so that none waits for the next."""


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
class Settings:
    """A tokenizer and how it is used, as plain data.

    Args:
        backend: the tokenizer as the `tokenizers` library writes it.
        side: where a text that is too long is cut.
        whole: texts that look like special tokens are split like any other.
    """

    backend: str
    max_length: int | None
    special: bool
    side: str
    whole: bool
    types: bool


class Encoder:
    """A tokenizer of the `tokenizers` library, set up once."""

    def __init__(self, settings: Settings) -> None:
        from tokenizers import Tokenizer

        self._settings = settings
        self._tokenizer = Tokenizer.from_str(settings.backend)
        self._tokenizer.encode_special_tokens = settings.whole
        if settings.max_length is not None:
            self._tokenizer.enable_truncation(settings.max_length, strategy="longest_first", direction=settings.side)

    def encode(self, columns: Sequence[list[str]]) -> Piece:
        texts: list[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        found = self._tokenizer.encode_batch_fast(texts, add_special_tokens=self._settings.special)
        tokens, types, lengths = array("I"), array("b"), array("q")
        for encoding in found:
            ids = encoding.ids
            tokens.extend(ids)
            lengths.append(len(ids))
            if self._settings.types:
                types.extend(encoding.type_ids)
        return Piece(
            np.frombuffer(tokens, dtype=np.uint32),
            np.frombuffer(lengths, dtype=np.int64),
            np.frombuffer(types, dtype=np.int8) if self._settings.types else None,
        )


def tokenize(
    batches: Iterable[Sequence[Texts]],
    tokenizer: Any,
    max_length: int | None = None,
    special: bool = True,
    check_stop: Callable[[], None] = lambda: None,
) -> Iterator[Piece]:
    """Examples as tokens, a piece for each batch.

    Args:
        tokenizer: of transformers.
        max_length: longer examples are cut, pairs longest first; None cuts nothing.
        special: add the special tokens that the model expects.
        check_stop: called before each batch, so that a long job can be stopped.
    """
    columns = ([list(column) for column in zip(*batch, strict=True)] for batch in batches if len(batch))
    first = next(columns, None)
    if first is None:
        return
    pair = len(first) == 2
    given = itertools.chain([first], columns)
    if not getattr(tokenizer, "is_fast", False):
        for batch in given:
            check_stop()
            yield _by_transformers(tokenizer, batch, max_length, special, pair)
        return
    settings = _settings(tokenizer, max_length, special, pair)
    yield from _with_processes(given, settings, check_stop)


def encoder(
    tokenizer: Any, max_length: int | None, pair: bool, special: bool = True
) -> Callable[[Sequence[list[str]]], Piece]:
    """What tokenises columns of texts, in this process, as often as it is called."""
    if getattr(tokenizer, "is_fast", False):
        return Encoder(_settings(tokenizer, max_length, special, pair)).encode
    return lambda columns: _by_transformers(tokenizer, columns, max_length, special, pair)


def _settings(tokenizer: Any, max_length: int | None, special: bool, pair: bool) -> Settings:
    return Settings(
        backend=_backend(tokenizer),
        max_length=max_length,
        special=special,
        side=tokenizer.truncation_side,
        whole=bool(tokenizer.split_special_tokens),
        types=pair and "token_type_ids" in tokenizer.model_input_names,
    )


def _with_processes(
    batches: Iterator[list[list[str]]], settings: Settings, check_stop: Callable[[], None]
) -> Iterator[Piece]:
    """Begin here; where there is much to do, go on with a process for each core."""
    here, done = Encoder(settings), 0
    for batch in batches:
        check_stop()
        yield here.encode(batch)
        done += sum(len(text) for column in batch for text in column)
        if done > FEW_CHARACTERS:
            break
    cores = min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
    following = next(batches, None)
    if following is None:
        return
    rest = itertools.chain([following], batches)
    if cores == 1:
        for batch in rest:
            check_stop()
            yield here.encode(batch)
        return
    idle: SimpleQueue[Process] = SimpleQueue()
    processes = [Process(json.dumps(asdict(settings)), columns=len(following)) for _ in range(cores)]
    for process in processes:
        idle.put(process)

    def work(batch: list[list[str]]) -> Piece:
        process = idle.get()
        try:
            return process.encode(batch) or here.encode(batch)  # a process that died is done without
        finally:
            idle.put(process)

    waiting: deque[Future[Piece]] = deque()
    with ThreadPoolExecutor(cores) as threads:
        try:
            for batch in rest:
                check_stop()
                waiting.append(threads.submit(work, batch))
                if len(waiting) >= AHEAD * cores:
                    yield waiting.popleft().result()
            while waiting:
                check_stop()
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            for process in processes:
                process.close()


def _backend(tokenizer: Any) -> str:
    """The tokenizer as `tokenizers` writes it, free of what earlier calls left set."""
    from tokenizers import Tokenizer

    copy = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return str(copy.to_str())


def tokenizer_identity(tokenizer: Any) -> str:
    """sha256 of what decides a tokenizer's answers."""
    if getattr(tokenizer, "is_fast", False):
        core: Any = _backend(tokenizer)
    else:
        core = [
            type(tokenizer).__name__,
            sorted(tokenizer.get_vocab().items()),
            repr(sorted(tokenizer.init_kwargs.items())),
        ]
    facts = [core, tokenizer.truncation_side, tokenizer.split_special_tokens, list(tokenizer.model_input_names)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _by_transformers(
    tokenizer: Any, columns: Sequence[list[str]], max_length: int | None, special: bool, pair: bool
) -> Piece:
    """The way of tokenizers that are written in Python."""
    cut = {"truncation": "longest_first", "max_length": max_length} if max_length is not None else {}
    found = tokenizer(*columns, add_special_tokens=special, verbose=False, **cut)
    kinds = found.get("token_type_ids") if pair else None
    return Piece(
        np.fromiter(itertools.chain.from_iterable(found["input_ids"]), dtype=np.uint32),
        np.array([len(ids) for ids in found["input_ids"]], dtype=np.int64),
        np.fromiter(itertools.chain.from_iterable(kinds), dtype=np.int8) if kinds else None,
    )
