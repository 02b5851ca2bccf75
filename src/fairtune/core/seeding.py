"""Randomness: every purpose has its own stream, made from the run's seed, so that arms share all the noise they can."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor


def derive(seed: int, *purpose: object) -> int:
    """A seed for one purpose of a run; independent of every other purpose."""
    text = "\0".join([str(seed), *map(str, purpose)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def seed_all(seed: int) -> None:
    """Seed every global generator that a model or a method may draw from."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


RandomState = tuple[dict[str, Tensor], dict[str, Any]]


def random_state() -> RandomState:
    """The state of every global generator: tensors, and what JSON can hold."""
    tensors = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors |= {f"cuda{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    generator, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    tensors["numpy"] = torch.from_numpy(np.asarray(keys).astype(np.int64))
    return tensors, {"python": random.getstate(), "numpy": [generator, int(position), int(has_gauss), float(gauss)]}


def restore_random_state(saved: RandomState) -> None:
    tensors, state = saved
    torch.set_rng_state(tensors["torch"])
    cuda = [tensors[name] for name in sorted(tensors) if name.startswith("cuda")]
    if cuda and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(cuda)
    generator, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((generator, tensors["numpy"].numpy().astype(np.uint32), position, has_gauss, gauss))
    version, internal, gauss_next = state["python"]
    random.setstate((version, tuple(internal), gauss_next))
