"""Language models: presets are drawn alike from a seed, generate, and load in plain transformers; checkpoints must be causal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2Model, LlamaConfig, LlamaModel

from fairtune.core.errors import ModelError
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.causal_classifier import sees_ahead
from fairtune.models.init_card import make_init_card
from fairtune.models.loader import LoadedModel, load_classifier, load_language_model
from fairtune.models.parameters import count_parameters
from fairtune.models.presets import PRESETS
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.tokenizers import TrainingText, find_tokenizer, load_tokenizer
from tests.models.architectures import build

SMALL = ("gpt-mini", "llama-mini")


def drawn(name: str, vocab_size: int = 300, seed: int = 0, tokenizer: Any = None, **settings: Any) -> LoadedModel:
    torch.manual_seed(seed)
    return load_language_model(find_model({"preset": name, "vocab_size": vocab_size, **settings}), tokenizer)


def tokenizer_of(texts: list[str], size: int = 300) -> Any:
    source = find_tokenizer(size, find_model("gpt-mini"), TrainingText(str(texts), lambda: iter([texts])))
    return load_tokenizer(Path(source.folder))


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tokenizer_of([f"once upon a time there was a number {i}" for i in range(50)], 290)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_built_as_it_says_and_generates(name: str) -> None:
    network = drawn(name).network
    preset = PRESETS[name]
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert network.config._attn_implementation == "sdpa"
    assert network.config.max_position_embeddings == preset.context
    assert network.get_output_embeddings().weight is network.get_input_embeddings().weight
    assert not network.training
    assert not sees_ahead(network)
    start = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        found = network.generate(start, attention_mask=torch.ones_like(start), max_new_tokens=4, do_sample=False)
        logits = network(start).logits
    assert found.shape == (1, 7)
    assert found[0, 3] == logits[0, -1].argmax()


@pytest.mark.parametrize(
    ("name", "total", "frozen"),
    [
        ("gpt-medium-512", 44_909_056, 3_151_872),
        ("gpt-mini", 16_090_880, 526_336),
        ("llama-mini", 15_636_992, 327_680),
    ],
)
def test_the_parameters_are_those_that_are_known(name: str, total: int, frozen: int) -> None:
    """The published GPT Medium-512 had no attention biases: 44,896,768 parameters, of them 3,145,728 frozen."""
    network = drawn(name, vocab_size=50_257).network
    assert count_parameters(network).total == total
    prepared = create_method(parse_method_use("orthogonal_qk"), 1).prepare(network)
    found = count_parameters(prepared)
    assert (found.frozen, found.total) == (frozen, total)


@pytest.mark.parametrize("name", SMALL)
def test_the_seed_alone_decides_the_weights(name: str) -> None:
    one, same, other = (drawn(name, seed=seed).network.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not any(torch.equal(one[key], other[key]) for key in one if one[key].ndim > 1)
    assert torch.isfinite(torch.cat([tensor.flatten() for tensor in one.values()])).all()


@pytest.mark.parametrize("name", SMALL)
def test_a_saved_model_is_a_plain_transformers_model(name: str, tokenizer: Any, tmp_path: Path) -> None:
    network = drawn(name, tokenizer=tokenizer).network
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, words = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert type(again).__name__ == {"gpt-mini": "GPT2LMHeadModel", "llama-mini": "LlamaForCausalLM"}[name]
    assert again.get_output_embeddings().weight is again.get_input_embeddings().weight
    batch = words("once upon a time", return_tensors="pt")
    with torch.no_grad():
        assert torch.equal(again.eval()(**batch).logits, network(**batch).logits)
    made = [model.generate(**batch, max_new_tokens=5, do_sample=False).tolist() for model in (network, again)]
    assert made[0] == made[1]
    loaded = load_language_model(find_model(str(tmp_path)), tokenizer)
    card = make_init_card(loaded.network, loaded)
    assert (card.changed, card.new, card.unverified) == ((), (), ())


def test_an_eos_that_also_pads_still_learns(tokenizer: Any, tmp_path: Path) -> None:
    tokenizer.save_pretrained(tmp_path / "words")
    words = AutoTokenizer.from_pretrained(tmp_path / "words")
    words.pad_token = words.eos_token
    drawn("llama-mini", tokenizer=words).network.save_pretrained(tmp_path / "model")
    network: Any = load_language_model(find_model(str(tmp_path / "model")), words).network
    ids = torch.tensor([[0, 5, 0, 6]])
    network.model(ids)[0].sum().backward()
    assert float(network.model.embed_tokens.weight.grad[0].abs().sum()) > 0


@pytest.mark.parametrize("name", SMALL)
def test_a_classifier_from_scratch(name: str, tokenizer: Any) -> None:
    source = find_model({"preset": name, "vocab_size": 300})
    torch.manual_seed(3)
    loaded = load_classifier(source, ("neg", "neutral", "pos"), tokenizer)
    config: Any = loaded.network.config
    assert config.id2label == {0: "neg", 1: "neutral", 2: "pos"}
    assert (config.pad_token_id, config.problem_type) == (1, "single_label_classification")
    batch = tokenizer(["once", "upon a time there was"], padding=True, return_tensors="pt")
    with torch.no_grad():
        assert loaded.network(**batch).logits.shape == (2, 3)
    card = make_init_card(loaded.network, loaded)
    assert (card.same, card.changed, card.new) == (len(loaded.network.state_dict()), (), ())
    card.require_untouched()
    seeing = load_classifier(source, ("neg", "pos"), tokenizer, "bidirectional").network
    assert sees_ahead(seeing)
    assert not sees_ahead(loaded.network)


def saved(model: Any, folder: Path) -> ModelSource:
    model.save_pretrained(folder)
    return find_model(str(folder))


@pytest.mark.parametrize("name", ["gpt2", "mistral", "gpt-neox"])
def test_causal_checkpoints_load_and_are_proved(name: str, tmp_path: Path) -> None:
    loaded = load_language_model(saved(build(name), tmp_path))
    card = make_init_card(loaded.network, loaded)
    assert (card.changed, card.new, card.unverified) == ((), (), ())
    assert card.same == len({id(tensor) for tensor in loaded.network.state_dict(keep_vars=True).values()})


def test_a_model_that_sees_ahead_is_no_language_model(tmp_path: Path) -> None:
    source = saved(build("bert"), tmp_path)
    with pytest.raises(ModelError, match=r"is not a causal language model: its tokens see those after them"):
        load_language_model(source)


def test_a_checkpoint_without_a_head_of_its_own_is_reported(tmp_path: Path) -> None:
    sizes = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    base = LlamaModel(LlamaConfig(**sizes, intermediate_size=48, tie_word_embeddings=False))
    with pytest.raises(ModelError, match=r"no weights for 1 tensors of LlamaForCausalLM \(lm_head.weight\)"):
        load_language_model(saved(base, tmp_path / "untied"))
    tied = GPT2Model(GPT2Config(vocab_size=60, n_embd=32, n_layer=1, n_head=4, bos_token_id=1, eos_token_id=2))
    loaded = load_language_model(saved(tied, tmp_path / "tied"))
    card = make_init_card(loaded.network, loaded)
    assert (card.same, card.changed, card.new, card.unverified) == (len(tied.state_dict()), (), (), ())


def test_a_tokenizer_without_padding_pads_with_its_end(tokenizer: Any, tmp_path: Path) -> None:
    tokenizer.save_pretrained(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(config.read_text().replace('"pad_token": "<|pad|>"', '"pad_token": null'))
    assert load_tokenizer(tmp_path, padding=False).pad_token_id is None
    found = load_tokenizer(tmp_path)
    assert found.pad_token_id == found.eos_token_id == 0


def with_generation(tmp_path: Path, settings: dict[str, Any]) -> ModelSource:
    build("gpt2").save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    return find_model(str(tmp_path))


def test_settings_of_generation_that_would_not_be_saved_do_not_cost_a_run_its_model(tmp_path: Path) -> None:
    loaded = load_language_model(with_generation(tmp_path, {"temperature": 0.3}))
    assert "its generation_config.json is left out, as transformers would not save it" in loaded.notes[0]
    loaded.network.save_pretrained(tmp_path / "saved")
    kept = load_language_model(with_generation(tmp_path, {"temperature": 0.3, "do_sample": True}))
    assert not kept.notes
    assert kept.network.generation_config.temperature == 0.3
