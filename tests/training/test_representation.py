"""What the last linear layer sees, for heads of every make."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from fairtune.methods.bpsom.model import BPSOMForSequenceClassification, active_head
from fairtune.models.causal_classifier import classify_at_last_token
from fairtune.training.representation import (
    MOST,
    answers_of,
    chosen_rows,
    seen_by_last_layer,
)
from tests.models.architectures import draw

NAMES = ("bert", "roberta", "distilbert", "deberta-v3", "electra")
BATCH = {
    "input_ids": torch.tensor([[5, 6, 7, 8], [9, 10, 11, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
}


def seen(model: Any) -> tuple[torch.Tensor, torch.nn.Module, torch.Tensor]:
    with torch.inference_mode():
        logits, answers = answers_of(model.eval(), dict(BATCH), None)
    found = seen_by_last_layer(logits, answers)
    assert found is not None
    return logits, *found


def gpt() -> Any:
    """A head that answers for every token, as transformers has it."""
    from transformers import GPT2Config, GPT2ForSequenceClassification

    return GPT2ForSequenceClassification(
        GPT2Config(vocab_size=60, n_embd=32, n_layer=1, n_head=4, n_positions=16, pad_token_id=0)
    )


def gpt_at_last_token() -> Any:
    model = gpt()
    classify_at_last_token(model, None)
    return model


@pytest.mark.parametrize("build", [*(partial(draw, name) for name in NAMES), gpt, gpt_at_last_token])
def test_the_last_layer_makes_the_logits_of_what_is_found(build: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    logits, layer, pooled = seen(build())
    assert isinstance(layer, torch.nn.Linear)
    assert pooled.shape == (2, layer.in_features)
    with torch.no_grad():
        torch.testing.assert_close(layer(pooled), logits, atol=1e-5, rtol=1e-5)


def test_of_bpsom_it_is_what_the_map_sees() -> None:
    torch.manual_seed(0)
    model = BPSOMForSequenceClassification.of(draw("bert"), hidden=12, grid=3)
    logits, layer, pooled = seen(model)
    assert layer is active_head(model).out
    assert pooled.shape == (2, 12)
    assert float(pooled.min()) > 0, "sigmoids"
    assert logits.shape == (2, 2)


def test_hooks_are_gone_afterwards_and_nothing_is_drawn() -> None:
    model = draw("bert")
    state = torch.get_rng_state()
    seen(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_whose_logits_no_layer_gives_has_none() -> None:
    assert seen_by_last_layer(torch.ones(2, 3), [(torch.nn.Identity(), torch.zeros(2, 3), torch.zeros(2, 3))]) is None


def test_the_same_rows_are_kept_of_every_run() -> None:
    assert chosen_rows(7).tolist() == list(range(7))
    many = chosen_rows(10 * MOST)
    assert len(np.unique(many)) == MOST
    assert (many[0], many[-1]) == (0, 10 * MOST - 1)
