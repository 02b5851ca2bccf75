"""Texts to tokens: in batches, by several processes where there is enough work, always in the order of the texts."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from fairtune.core.cache import content_hash
from fairtune.core.machine import available_cores
from fairtune.tasks.task import Texts
from fairtune.tasks.tokens.encoder import Encoder, EncoderProcess, EncoderSettings, Piece

BATCH = 1000
FEW_CHARACTERS = 3_000_000
"""Work that is done before other processes would have started."""
MOST_PROCESSES = 16
AHEAD = 3
"""Batches in work for each process, so that none waits for the next."""
TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")


@dataclass(frozen=True)
class TokenizerFolder:
    """A tokenizer in a folder, to be loaded only where its answers are not in the cache: loading one takes seconds.

    Args:
        load: loads it, checked.
    """

    folder: Path
    load: Callable[[], Any]

    def identity(self) -> list[str]:
        """What decides the tokenizer's answers, found without loading it: its files, and who reads them."""
        files = sorted({file for pattern in TOKENIZER_FILES for file in self.folder.glob(pattern)})
        versions = [f"{name} {importlib.metadata.version(name)}" for name in ("tokenizers", "transformers")]
        return [*versions, *(f"{file.name} {content_hash(file)}" for file in files)]


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


def _settings(tokenizer: Any, max_length: int | None, special: bool, pair: bool) -> EncoderSettings:
    return EncoderSettings(
        backend=_backend(tokenizer),
        max_length=max_length,
        special=special,
        side=tokenizer.truncation_side,
        whole=bool(tokenizer.split_special_tokens),
        types=pair and "token_type_ids" in tokenizer.model_input_names,
    )


def _with_processes(
    batches: Iterator[list[list[str]]], settings: EncoderSettings, check_stop: Callable[[], None]
) -> Iterator[Piece]:
    """Begin here; where there is much to do, go on with a process for each core."""
    here, done = Encoder(settings), 0
    for batch in batches:
        check_stop()
        yield here.encode(batch)
        done += sum(len(text) for column in batch for text in column)
        if done > FEW_CHARACTERS:
            break
    cores = min(available_cores(), MOST_PROCESSES)
    following = next(batches, None)
    if following is None:
        return
    rest = itertools.chain([following], batches)
    if cores == 1:
        for batch in rest:
            check_stop()
            yield here.encode(batch)
        return
    idle: SimpleQueue[EncoderProcess] = SimpleQueue()
    processes = [EncoderProcess(json.dumps(asdict(settings)), columns=len(following)) for _ in range(cores)]
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
    type_ids = found.get("token_type_ids") if pair else None
    return Piece(
        np.fromiter(itertools.chain.from_iterable(found["input_ids"]), dtype=np.uint32),
        np.array([len(ids) for ids in found["input_ids"]], dtype=np.int64),
        np.fromiter(itertools.chain.from_iterable(type_ids), dtype=np.int8) if type_ids else None,
    )
