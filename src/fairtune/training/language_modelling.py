"""Learning to predict the next token: blocks of a text in a seed's order, every held-out token scored once, sums by document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fairtune.core.out_of_memory import score_each
from fairtune.ledger.predictions import TextScores
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.settings.metrics import text_metrics
from fairtune.tasks.tokens.blocks import TokenBlocks
from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.objectives import Evaluation, scoring

Span = tuple[int, int]
IGNORED = -100
"""The target that the loss leaves out, as torch has it."""
TOKENS_PER_BATCH = {"cpu": 2048}
MANY_TOKENS = 4096
"""Tokens in a batch that is scored, whose logits over the whole vocabulary must fit into memory."""
PROBED, SAMPLED = 2, 4
"""Blocks that a model is measured on, and batches that an evaluation's time is measured on."""


@dataclass
class LanguageModelling:
    """Text in tokens.

    Args:
        text: the splits train, validation and test.
        length: tokens of a block.
    """

    text: Mapping[str, TokenBlocks]
    length: int
    metric: str
    scores_final: bool = True

    def __post_init__(self) -> None:
        self._rows = self.text["train"].blocks(self.length)

    @property
    def splits(self) -> Collection[str]:
        return self.text.keys()

    @property
    def training_data(self) -> TrainingData:
        return TrainingData()

    def __len__(self) -> int:
        return len(self._rows)

    def begin(self, methods: Sequence[Method]) -> None:
        """Nothing depends on the methods."""

    def order(self, batch_size: int, seed: int, epoch: int) -> list[Indices]:
        shuffled = np.random.default_rng([seed, epoch]).permutation(len(self._rows))
        return [shuffled[start : start + batch_size] for start in range(0, len(shuffled), batch_size)]

    def batch(self, rows: Indices, device: torch.device) -> Batch:
        ids = _tokens(self._rows[rows], device)
        return {"input_ids": ids, "labels": ids}

    def passing(self, device: torch.device) -> Iterator[Batch]:
        most = max(1, TOKENS_PER_BATCH.get(device.type, MANY_TOKENS) // self.length)
        rows = np.arange(len(self))
        return (self.batch(rows[start : start + most], device) for start in range(0, len(rows), most))

    def sizes(self, rows: Indices) -> tuple[int, int]:
        return len(rows) * self.length, 0

    def outputs(self, model: nn.Module, batch: Batch) -> Any:
        return model(**batch)

    def evaluate(
        self,
        model: nn.Module,
        split: str,
        device: torch.device,
        methods: Sequence[Method],
        check_stop: Callable[[], None],
    ) -> Evaluation:
        text = self.text[split]
        losses, hits = np.zeros(len(text.stream), np.float64), np.zeros(len(text.stream), np.int64)

        def score(spans: list[Span]) -> None:
            check_stop()
            inputs, targets = (_tokens(rows, device) for rows in _padded(text, spans))
            logits = model(input_ids=inputs).logits.float()
            nll = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
            correct = (logits.argmax(-1) == targets).cpu().numpy()
            for (start, end), row, hit in zip(spans, nll.view_as(targets).cpu().numpy(), correct, strict=True):
                losses[start:end], hits[start:end] = row[: end - start], hit[: end - start]

        with scoring(model, methods):
            score_each(self._batches(text, TOKENS_PER_BATCH.get(device.type, MANY_TOKENS)), score)
        firsts = np.concatenate([[0], np.cumsum(text.documents[:, 0])[:-1]]).astype(np.int64)
        found = {"nll": np.add.reduceat(losses, firsts), "correct": np.add.reduceat(hits, firsts)}
        return Evaluation(found, text_metrics(found["nll"], *_sizes(text), found["correct"]))

    def _batches(self, text: TokenBlocks, most: int) -> Iterator[list[Span]]:
        """Windows of similar length, the longest first, as many at a time as fit."""
        waiting: list[Span] = []
        for span in sorted(text.spans(self.length), key=lambda span: span[0] - span[1]):
            if waiting and (len(waiting) + 1) * (waiting[0][1] - waiting[0][0]) > most:
                yield waiting
                waiting = []
            waiting.append(span)
        yield waiting

    def describe_head(self, *_: Any) -> dict[str, Any]:
        return {}

    def save_head(self, *_: Any) -> None:
        """The head is part of the model."""

    def predictions(self, split: str, found: Evaluation) -> TextScores:
        text = self.text["test" if split == "final" else split]
        tokens, size, words = _sizes(text)
        ids = tuple(map(str, range(len(tokens))))
        return TextScores(ids, found.arrays["nll"], tokens, size, words, found.arrays["correct"])

    def probe(self) -> Batch:
        text = self.text["validation"]
        ids = _tokens(_padded(text, next(self._batches(text, PROBED * self.length)))[0], torch.device("cpu"))
        return {"input_ids": ids, "labels": ids}

    def sample(self, split: str) -> tuple[LanguageModelling, float]:
        text = self.text[split]
        most = SAMPLED * max(self.length, TOKENS_PER_BATCH["cpu"])
        ends = np.cumsum(text.documents[:, 0])
        count = int(np.searchsorted(ends, min(most, len(text.stream)))) + 1
        few = replace(text, stream=text.stream[: ends[count - 1]], documents=text.documents[:count])
        return LanguageModelling({**self.text, split: few}, self.length, self.metric), len(text.stream) / len(
            few.stream
        )


def _padded(text: TokenBlocks, spans: list[Span]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Inputs and targets of windows, filled up on the right, where causal tokens do not look; what is not text is not scored."""
    width = max(end - start for start, end in spans)
    inputs = np.full((len(spans), width), text.eos, np.int64)
    targets = np.full_like(inputs, IGNORED)
    for row, (start, end) in enumerate(spans):
        given, wanted = text.window(start, end)
        inputs[row, : end - start] = given
        targets[row, : end - start] = np.where(text.is_text[start:end], wanted.astype(np.int64), IGNORED)
    return inputs, targets


def _tokens(rows: npt.NDArray[np.integer[Any]], device: torch.device) -> Tensor:
    ids = torch.from_numpy(rows.astype(np.int64))
    return ids if device.type == "cpu" else ids.to(device, non_blocking=True)


def _sizes(text: TokenBlocks) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Tokens, bytes and words of each document's text."""
    tokens, size, words = text.documents.astype(np.int64).T
    return tokens - text.edges, size, words
