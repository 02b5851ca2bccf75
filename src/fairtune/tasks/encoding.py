"""Texts as token ids: tokenised in chunks, kept as flat arrays, made once a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.tasks.task import Labels, Split, Task

CHUNK = 1000
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Encoded:
    """Examples as tokens; example i has the ids `tokens[starts[i]:starts[i + 1]]`.

    Args:
        types: token_type_ids where the model has them and the examples are pairs.
    """

    tokens: npt.NDArray[np.int32]
    types: npt.NDArray[np.int8] | None
    starts: npt.NDArray[np.int64]
    labels: Labels
    ids: tuple[str, ...]
    padding: int

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.starts)

    def take(self, rows: npt.NDArray[np.int64]) -> Encoded:
        """Some of the examples, in the given order."""
        places = np.concatenate([np.arange(self.starts[row], self.starts[row + 1]) for row in rows])
        return Encoded(
            tokens=self.tokens[places],
            types=None if self.types is None else self.types[places],
            starts=np.concatenate([[0], np.cumsum(self.lengths[rows])]).astype(np.int64),
            labels=self.labels[rows],
            ids=tuple(self.ids[row] for row in rows),
            padding=self.padding,
        )


def encode(split: Split, tokenizer: Any, max_length: int, between: Callable[[], None]) -> Encoded:
    """Tokenise a split; pairs are truncated longest first.

    Args:
        between: called before each chunk, so that a long job can be stopped.
    """
    tokens: list[int] = []
    types: list[int] | None = [] if split.texts and len(split.texts[0]) == 2 else None
    lengths: list[int] = []
    for start in range(0, len(split), CHUNK):
        between()
        columns = [list(column) for column in zip(*split.texts[start : start + CHUNK], strict=True)]
        encoded = tokenizer(*columns, truncation="longest_first", max_length=max_length)
        for ids in encoded["input_ids"]:
            tokens.extend(ids)
            lengths.append(len(ids))
        if types is not None and "token_type_ids" in encoded:
            for kinds in encoded["token_type_ids"]:
                types.extend(kinds)
    return Encoded(
        tokens=np.array(tokens, dtype=np.int32),
        types=np.array(types, dtype=np.int8) if types else None,
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=split.labels,
        ids=split.ids,
        padding=int(tokenizer.pad_token_id),
    )


_encoded: dict[tuple[str, ...], Encoded] = {}


def encode_task(
    task: Task, tokenizer: Any, tokenizer_name: str, max_length: int, between: Callable[[], None]
) -> dict[str, Encoded]:
    """All splits as tokens; a process that trains several arms tokenises once."""
    found = {}
    for name in SPLITS:
        key = (task.fingerprint, name, tokenizer_name, str(max_length))
        if key not in _encoded:
            _encoded[key] = encode(task.splits[name], tokenizer, max_length, between)
        found[name] = _encoded[key]
    return found
