"""Whether a stated speed-up is possible: operations are counted on a network of the model's shape, and nothing is timed."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from fairtune.core.errors import ModelError
from fairtune.core.seeding import seed_all
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import create_method
from fairtune.models.causal_classifier import classify_at_last_token
from fairtune.models.flops import count_flops
from fairtune.models.operations import PRESET, find_config
from fairtune.models.transformers_files import draw_network, explain_failure

ROWS, LENGTH = 2, 128
"""Of the batch that is counted; operations per token hardly depend on it."""


@dataclass(frozen=True)
class StepCount:
    """What a training step is made of, per token.

    Args:
        before, after: operations of a forward and a backward pass without the methods, and with them.
        frozen: share of the parameters that the optimizer no longer updates.
        passes: of a step, as a multiple of a plain step's.
        config: where the model's sizes come from.
    """

    model: str
    architecture: str
    config: str
    before: float
    after: float
    frozen: float
    passes: float
    length: int

    @property
    def speedup(self) -> float:
        """The most that fewer matrix products can speed a step up; below 1 where there are more of them."""
        return self.before / (self.after * self.passes)


def count_step(model: str, methods: Sequence[MethodUse]) -> StepCount:
    """Count a step with and without methods, on a network of the model's shape with random weights.

    Raises:
        ModelError: the model is not known, or not with these methods.
    """
    what = f"model '{model}'"
    config, origin = find_config(model, num_labels=2)
    config.problem_type = "single_label_classification"
    is_text = origin == PRESET  # presets are there to be trained as language models
    seed_all(0)
    network = draw_network(AutoModelForCausalLM if is_text else AutoModelForSequenceClassification, config, what)
    with explain_failure(f"{what}: no text goes through it"):
        if not is_text:
            classify_at_last_token(network, None)
    length = min(LENGTH, int(getattr(config, "max_position_embeddings", None) or LENGTH))
    before = _count(network, config.vocab_size, length, is_text)
    changed: torch.nn.Module = network
    for use in methods:
        try:
            changed = create_method(use, 0).prepare(changed)
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
    parameters = list(changed.parameters())
    frozen = sum(p.numel() for p in parameters if not p.requires_grad) / sum(p.numel() for p in parameters)
    after = _count(changed, config.vocab_size, length, is_text)
    passes = math.prod(use.config.step_factor for use in methods)
    return StepCount(model, type(network).__name__, origin, before, after, frozen, passes, length)


def _count(network: torch.nn.Module, vocabulary: int, length: int, is_text: bool) -> float:
    """Operations per token; on a device that has shapes alone, where nothing is computed, if the model goes through there."""
    ids = torch.randint(min(5, vocabulary - 1), vocabulary, (ROWS, length))
    labels = ids if is_text else torch.zeros(ROWS, dtype=torch.long)
    batch = {"input_ids": ids, "labels": labels}
    try:
        found = count_flops(
            copy.deepcopy(network).to("meta"), {name: tensor.to("meta") for name, tensor in batch.items()}
        )
    except (RuntimeError, NotImplementedError):  # it looks at values on its way, such as whether a mask hides anything
        found = count_flops(network, batch)
    return found.total / found.tokens
