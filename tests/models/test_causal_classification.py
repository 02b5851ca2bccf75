"""GPT-like classifiers: scored at the last real token whatever pads the text, causal unless told otherwise."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor

from fairtune.core.errors import ModelError
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.causal_classifier import Attention, classify_at_last_token, sees_ahead
from fairtune.models.model_parts import base_model
from tests.models.architectures import VOCABULARY, build

GPT_LIKE = ("gpt2", "llama", "opt", "gpt-neox", "qwen2")
ALSO_GPT_LIKE = ("bloom", "falcon-by-group", "falcon-alibi", "mistral", "gemma2", "phi3")
CAUSAL_ONLY = ("gpt-neo", "stablelm")
EOS = 2
TEXTS = ([7, 8, 9, 10, 11, 12, 13], [20, 21, EOS], [30], [40, EOS, 41, 42, EOS])
ATTENTIONS: tuple[Attention, ...] = ("causal", "bidirectional")
each_model = pytest.mark.parametrize("name", ["gpt2", "llama"])
every_model = pytest.mark.parametrize("name", GPT_LIKE + ALSO_GPT_LIKE)
each_attention = pytest.mark.parametrize("attention", ATTENTIONS)


def plain(name: str, pad: int = 0) -> Any:
    """transformers' own classifier with random weights, in evaluation mode."""
    config = copy.deepcopy(build(name).config)
    config.pad_token_id, config.eos_token_id, config.num_labels = pad, EOS, 3
    config.id2label = {0: "a", 1: "b", 2: "c"}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = hf.AutoModelForSequenceClassification.from_config(config).eval()
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)  # far from its quiet start, so that each part matters
    return model


def made(name: str, attention: Attention | None = None, pad: int = 0) -> Any:
    model = plain(name, pad)
    classify_at_last_token(model, attention)
    return model


def batch(texts: Any = TEXTS, side: str = "right", more: int = 0, pad: int = 0) -> dict[str, Tensor]:
    width = max(map(len, texts)) + more
    ids, mask = torch.full((len(texts), width), pad), torch.zeros(len(texts), width, dtype=torch.long)
    for row, text in enumerate(texts):
        place = slice(0, len(text)) if side == "right" else slice(width - len(text), width)
        ids[row, place], mask[row, place] = torch.tensor(text), 1
    return {"input_ids": ids, "attention_mask": mask}


def alone(model: Any) -> Tensor:
    """Each text by itself, without padding."""
    with torch.no_grad():
        return torch.cat([model(input_ids=torch.tensor([text])).logits for text in TEXTS])


def hidden(model: Any, ids: list[int]) -> Tensor:
    with torch.no_grad():
        states: Tensor = base_model(model)(input_ids=torch.tensor([ids])).last_hidden_state[0]
    return states


@every_model
def test_a_later_token_changes_earlier_states_in_bidirectional_mode_alone(name: str) -> None:
    text, other = [7, 8, 9, 10, 11], [7, 8, 9, 10, 33]
    causal, both = made(name, "causal"), made(name, "bidirectional")
    torch.testing.assert_close(hidden(causal, text)[:-1], hidden(causal, other)[:-1], rtol=0, atol=0)
    assert ((hidden(both, text) - hidden(both, other)).abs().amax(-1) > 1e-4).all(), "every token sees the last"
    assert (sees_ahead(causal), sees_ahead(both)) == (False, True)


@every_model
@each_attention
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_never_changes_a_prediction(name: str, attention: Attention, side: str) -> None:
    model = made(name, attention)
    expected = alone(model)
    for more in (0, 1, 9):
        for pad in (0, EOS, 7, VOCABULARY - 1):  # also ids that stand in the texts, also as their last token
            with torch.no_grad():
                found = model(**batch(side=side, more=more, pad=pad)).logits
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, msg=f"{more} more, pad {pad}")


@pytest.mark.parametrize("name", [*GPT_LIKE, *CAUSAL_ONLY])
def test_loss_gradients_and_predictions_are_those_of_transformers_on_an_ordinary_batch(name: str) -> None:
    """Ordinary: padded on the right with an id that is in no text."""
    theirs, ours = plain(name), made(name)
    labels = torch.tensor([0, 2, 1, 0])
    results = [model(**batch(), labels=labels) for model in (theirs, ours)]
    torch.testing.assert_close(results[0].logits, results[1].logits, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(results[0].loss, results[1].loss, rtol=1e-6, atol=1e-6)
    assert type(results[1]) is type(results[0])
    for result in results:
        result.loss.backward()
    mine = dict(ours.named_parameters())
    for tensor, parameter in theirs.named_parameters():
        torch.testing.assert_close(mine[tensor].grad, parameter.grad, rtol=1e-4, atol=2e-5, msg=tensor)


@each_model
@each_attention
def test_embeddings_can_be_given_instead_of_ids(name: str, attention: Attention) -> None:
    model = made(name, attention)
    for side in ("right", "left"):
        given = batch(side=side, more=3)
        with torch.no_grad():
            expected = model(**given).logits
        embeds = model.get_input_embeddings()(given["input_ids"]).detach().requires_grad_()
        found = model(inputs_embeds=embeds, attention_mask=given["attention_mask"], labels=torch.tensor([0, 1, 2, 0]))
        torch.testing.assert_close(found.logits, expected, rtol=1e-6, atol=1e-6)
        found.loss.backward()
        moved = embeds.grad.abs().amax(-1) > 0
        assert embeds.grad.isfinite().all()
        assert torch.equal(moved, given["attention_mask"] == 1), "real tokens have a gradient, padding has none"


@each_model
@each_attention
def test_a_saved_model_is_a_plain_one_that_attends_the_same_way(
    name: str, attention: Attention, tmp_path: Path
) -> None:
    model, expected_class = made(name, attention), type(plain(name))
    names = set(plain(name).state_dict())
    model.save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["architectures"] == [expected_class.__name__]
    assert set(model.state_dict()) == names
    assert (stored.get("is_causal", True) is False) == (attention == "bidirectional")
    loaded = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(loaded) is expected_class
    with torch.no_grad():
        expected = model(**batch()).logits
        torch.testing.assert_close(loaded(**batch()).logits, expected, rtol=1e-5, atol=1e-5)
        assert classify_at_last_token(loaded, None) == attention, "the model's own"
        torch.testing.assert_close(loaded(**batch(side="left")).logits, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_a_model_that_sees_ahead_is_left_alone_and_refuses_an_attention(name: str) -> None:
    model = build(name)
    kind, config = type(model), model.config.to_dict()
    assert classify_at_last_token(model, None) is None
    for attention in ATTENTIONS:
        with pytest.raises(ModelError, match=f"{attention} is for GPT-like models; every token of {kind.__name__}"):
            classify_at_last_token(model, attention)
    assert type(model) is kind
    assert model.config.to_dict() == config


@pytest.mark.parametrize("name", CAUSAL_ONLY)
def test_a_model_that_stays_causal_refuses_to_be_called_bidirectional(name: str) -> None:
    model = plain(name)
    kind, config = type(model), model.config.to_dict()
    with pytest.raises(ModelError, match=f"does not work for {kind.__name__}.* Allowed for it: causal"):
        classify_at_last_token(model, "bidirectional")
    assert type(model) is kind
    assert model.config.to_dict() == config


@each_attention
@pytest.mark.parametrize("settings", [{"type": "lora", "r": 4}, {"type": "prompt_tuning", "num_virtual_tokens": 3}])
def test_adapters_and_prompts_on_top(attention: Attention, settings: dict[str, Any]) -> None:
    model = create_method(parse_method_use({"peft": settings}), 0).prepare(made("gpt2", attention))
    model.eval()
    assert sees_ahead(model) == (attention == "bidirectional")
    results = [model(**batch(side=side, more=more)).logits for side, more in (("right", 0), ("right", 4), ("left", 2))]
    for text, row in zip(TEXTS, results[0], strict=True):
        single = model(**batch([text])).logits[0]
        torch.testing.assert_close(single, row, rtol=1e-5, atol=1e-5)
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-5, atol=1e-5)
    model.train()
    model(**batch(), labels=torch.tensor([0, 1, 2, 0])).loss.backward()
    trained = {tensor: p.grad for tensor, p in model.named_parameters() if p.requires_grad}
    assert trained
    assert all(gradient is not None and gradient.isfinite().all() for gradient in trained.values())
