"""Scores of many texts, fast: tokenised in bulk, in batches of similar length, put back in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fairtune.classifier.batch_threads import compute_batches
from fairtune.core.errors import ModelError
from fairtune.models.model_parts import evaluating, require_rows
from fairtune.tasks.task import Texts
from fairtune.tasks.tokens.encoded_splits import Encoded, Indices, collate, evaluation_batches
from fairtune.tasks.tokens.tokenization import BATCH, Piece, encoder
from fairtune.training.classification import MANY_TOKENS, TOKENS_PER_BATCH
from fairtune.training.device import keep_freed_memory

Scores = npt.NDArray[np.float32]
_one_at_a_time = threading.RLock()
"""A network is put into evaluation mode and back for one caller at a time."""
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Predictor:
    """A classifier that scores texts; it knows outputs, not what they are called.

    Args:
        network: any transformers classifier, or a module that is called like one; it is moved to the device.
        tokenizer: of transformers.
        max_length: longer texts are cut, pairs longest first.
        precision: fp32, bf16, fp16, or auto: bf16 where a GPU has it, else fp32.
        batch_tokens: padded tokens in a batch; None is what suits the device.
    """

    def __init__(
        self,
        network: nn.Module,
        tokenizer: Any,
        max_length: int,
        device: torch.device | str = "cpu",
        precision: str = "fp32",
        batch_tokens: int | None = None,
    ) -> None:
        self.network, self.tokenizer, self.max_length = network, tokenizer, max_length
        self.device = torch.device(device)
        if self.device.type == "cpu":
            keep_freed_memory()
        self.half = _half(precision, self.device)
        self.batch_tokens = batch_tokens or TOKENS_PER_BATCH.get(self.device.type, MANY_TOKENS)
        self._encoders: dict[bool, Callable[[Sequence[list[str]]], Piece]] = {}

    @property
    def classes(self) -> int:
        """How many outputs the network has."""
        config: Any = self.network.config
        return int(config.num_labels)

    def logits(self, texts: Sequence[Texts], progress: Callable[[int], None] | None = None) -> Scores:
        """A row of outputs for each text, in the order of the texts; one that is there twice is computed once.

        Args:
            progress: called with how many texts were done since its last call.
        """
        # Sorted, so that the same texts in another order make the same batches and therefore the same bits.
        different = sorted(set(texts))
        if not different:
            return np.empty((0, self.classes), dtype=np.float32)
        place = {text: number for number, text in enumerate(different)}
        rows = np.fromiter((place[text] for text in texts), dtype=np.int64, count=len(texts))
        times = np.bincount(rows, minlength=len(different))
        scores = self._different(different, lambda done: progress(int(times[done].sum())) if progress else None)
        return scores[rows]

    def _different(self, texts: list[Texts], progress: Callable[[Indices], None]) -> Scores:
        data = self._encode(texts)
        batches = self._batches(data.lengths)
        found: Tensor | None = None

        def compute(network: Any, rows: Indices) -> Tensor:
            with torch.inference_mode(), self._precision():
                logits: Tensor = network(**self._batch(data, rows)).logits.float()
                return logits

        with _one_at_a_time, evaluating(self.network.to(self.device)):
            for rows, logits in zip(batches, compute_batches(self.network, compute, batches), strict=True):
                if found is None:
                    found = torch.empty((len(texts), logits.shape[-1]), device=logits.device)
                found[self._moved(torch.from_numpy(rows))] = logits
                progress(rows)
        assert found is not None
        scores: Scores = found.cpu().numpy()
        return scores

    def _encode(self, texts: list[Texts]) -> Encoded:
        pair = len(texts[0]) == 2
        if pair not in self._encoders:
            self._encoders[pair] = encoder(self.tokenizer, self.max_length, pair)
        encode = self._encoders[pair]
        pieces = [
            encode([list(column) for column in zip(*texts[start : start + BATCH], strict=True)])
            for start in range(0, len(texts), BATCH)
        ]
        tokens, lengths = (
            np.concatenate(parts) for parts in zip(*((p.tokens, p.lengths) for p in pieces), strict=True)
        )
        types = (
            np.concatenate([p.types for p in pieces if p.types is not None]) if pieces[0].types is not None else None
        )
        require_rows(self.network, tokens)
        empty = np.flatnonzero(lengths == 0)  # of a tokenizer that puts nothing around a text
        if len(empty):
            places = lengths.cumsum()[empty]
            tokens = np.insert(tokens, places, self._some_token())
            types = None if types is None else np.insert(types, places, 0)
            lengths[empty] = 1
        return Encoded(
            tokens=tokens,
            types=types,
            starts=np.concatenate([[0], lengths]).cumsum(),
            labels=np.zeros(len(texts), dtype=np.int64),
            names=None,
            padding=self.tokenizer.pad_token_id or 0,
        )

    def _some_token(self) -> int:
        """What stands for a text without tokens, since a model needs one."""
        names = ("bos_token_id", "eos_token_id", "pad_token_id")
        return next((token for name in names if (token := getattr(self.tokenizer, name)) is not None), 0)

    def _batches(self, lengths: Indices) -> list[Indices]:
        """Longest first, so that out-of-memory errors appear early."""
        batches = evaluation_batches(lengths, self.batch_tokens)
        if self.tokenizer.padding_side == "right" and self.tokenizer.pad_token_id is not None:
            return batches
        # Models such as XLNet are not made for padding on the right, and without a padding token there is none at all.
        return [part for rows in batches for part in np.split(rows, 1 + np.flatnonzero(np.diff(lengths[rows])))]

    def _batch(self, data: Encoded, rows: Indices) -> dict[str, Tensor]:
        arrays = {name: array for name, array in collate(data, rows).items() if name != "labels"}
        batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return batch if self.device.type == "cpu" else {name: self._moved(tensor) for name, tensor in batch.items()}

    def _moved(self, tensor: Tensor) -> Tensor:
        """On the device, without waiting for it."""
        return (tensor.pin_memory() if self.device.type == "cuda" else tensor).to(self.device, non_blocking=True)

    def _precision(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.half is None else torch.autocast(self.device.type, dtype=self.half)


def _half(precision: str, device: torch.device) -> torch.dtype | None:
    if precision == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else None
    if precision == "fp16" and device.type == "cpu":
        raise ModelError("precision fp16 needs a GPU; use bf16 or fp32 on a CPU.")
    if precision not in (*HALVES, "fp32"):
        raise ModelError(f"precision '{precision}' is not known; allowed: auto, fp32, bf16, fp16.")
    return HALVES.get(precision)
