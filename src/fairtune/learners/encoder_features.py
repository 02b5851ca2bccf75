"""What a frozen encoder makes of texts: the mean of its last states, one vector for each example, made once and kept.

A vector's last bits depend on the texts it was padded with, on the device and on the threads, so all of these are part of the
name under which vectors are kept: from the cache or computed again, they are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from fairtune.core.cache import cached, key_of
from fairtune.core.out_of_memory import score_each
from fairtune.learners.base import Features
from fairtune.models.loader import load_classifier
from fairtune.models.model_parts import text_encoder
from fairtune.models.sources import ModelSource
from fairtune.models.transformers_files import explain_failure
from fairtune.tasks.tokens.encoded_splits import Encoded, Indices, collate, evaluation_batches

AREA = "features"
VERSION = 1
"""Raised whenever the same tokens would give other vectors."""
FILE = "features.npy"
TOKENS_PER_BATCH = {"cpu": 1024}
MANY_TOKENS = 16384
CheckStop = Callable[[], None]


def encoder_features(
    source: ModelSource,
    tokenizer: Any,
    data: Encoded,
    device: str = "cpu",
    check_stop: CheckStop = lambda: None,
    report: Callable[[int], None] = lambda _: None,
) -> Features:
    """The vectors of examples, from the cache where they are in it.

    Args:
        data: the examples as this model's tokens.
        report: called with how many examples are done.
    """
    threads = torch.get_num_threads() if device == "cpu" else None
    parts = [VERSION, source.identity, _content(data), device.partition(":")[0], threads]
    key = key_of([*parts, torch.__version__, transformers.__version__])

    def build(folder: Path) -> None:
        found = compute_features(load_encoder(source, tokenizer), data, device, check_stop, report)
        with (folder / FILE).open("wb") as file:
            np.save(file, found, allow_pickle=False)

    return cached(AREA, key, build, lambda folder: np.load(folder / FILE, allow_pickle=False))


def load_encoder(source: ModelSource, tokenizer: Any) -> torch.nn.Module:
    """The pretrained encoder of a checkpoint, without a head."""
    network = load_classifier(source, ("0", "1"), tokenizer).network
    return text_encoder(network).eval()


def compute_features(
    encoder: torch.nn.Module,
    data: Encoded,
    device: str = "cpu",
    check_stop: CheckStop = lambda: None,
    report: Callable[[int], None] = lambda _: None,
) -> Features:
    """The mean of the encoder's last states over the tokens of each example."""
    place = torch.device(device.partition(":")[0])  # a worker sees one device of its kind
    encoder, done = encoder.to(place), 0
    found: Features | None = None

    def encode(rows: Indices) -> None:
        nonlocal found, done
        check_stop()
        arrays = {name: torch.from_numpy(array).to(place) for name, array in collate(data, rows).items()}
        arrays.pop("labels")
        states = encoder(**arrays).last_hidden_state.float()
        real = arrays["attention_mask"][..., None].float()
        means = (states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        if found is None:
            found = np.empty((len(data), means.shape[1]), dtype=np.float32)
        found[rows] = means.cpu().numpy()
        done += len(rows)
        report(done)

    with torch.inference_mode(), explain_failure("the encoder: no text goes through it"):
        batches = evaluation_batches(data.lengths, TOKENS_PER_BATCH.get(place.type, MANY_TOKENS))
        score_each(batches, encode)
    assert found is not None, "a split is never empty"
    return found


def _content(data: Encoded) -> str:
    """A hash of the examples' tokens, in their order."""
    digest = hashlib.sha256(str(data.tokens.dtype).encode())
    for part in (data.starts, data.tokens, data.types):
        if part is not None:
            digest.update(np.ascontiguousarray(part).data)
        digest.update(b"\0")
    return digest.hexdigest()
