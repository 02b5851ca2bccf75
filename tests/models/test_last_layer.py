"""The last layer computed for the token that is read: the same answers and gradients for each architecture, off where not sure."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from fairtune import orthogonalize_qk
from fairtune.methods.bpsom.model import BPSOMForSequenceClassification
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.attention import attention_layers
from fairtune.models.causal_classifier import classify_at_last_token
from fairtune.models.flops import count_flops
from fairtune.models.last_layer import narrow_last_layer
from fairtune.models.model_parts import base_model
from tests.models.architectures import BUILDERS, VOCABULARY, build

Padding = Literal["left", "right"]
FIRST = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "modernbert")
LAST = ("gpt2", "gpt2-classifier", "gpt-neox", "opt", "phi3", "llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2",
        "gemma3", "phi", "starcoder2", "olmo2", "smollm3", "stablelm")  # fmt: skip
OFF = {
    "albert": "AlbertLayer cannot be computed for one token",  # one layer is called again and again
    **dict.fromkeys(("deberta-v2", "deberta-v3"), "DebertaV2Layer cannot be computed for one token"),
    "mpnet": "MPNetLayer cannot be computed for one token",
    "bloom": "BloomBlock cannot be computed for one token",
    "falcon-alibi": "FalconDecoderLayer cannot be computed for one token",
    **dict.fromkeys(("falcon-multi-query", "falcon-by-head", "falcon-by-group"), "FalconAttention does not attend"),
    "gpt-neo": "GPTNeoSelfAttention does not attend",
    "bert-decoder-with-cross-attention": "no one attention in its last layer",
    "mt5-encoder": "no one attention in its last layer",
    "t5": "is an encoder-decoder",
    "bart": "is an encoder-decoder",
}
NO_CLASSIFIER = {"granite", "cohere"}
FUSED = ("modernbert", "gpt2", "gpt-neox", "phi3")
LENGTHS = (7, 4, 2)


def made(name: str, **settings: Any) -> Any:
    """A classifier with random weights, far from its quiet start, so that each part matters."""
    config = copy.deepcopy(build(name).config)
    config.pad_token_id, config.num_labels = 0, 3
    for key, value in settings.items():
        setattr(config, key, value)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = hf.AutoModelForSequenceClassification.from_config(config).eval()
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    classify_at_last_token(model, None)
    return model


def pair(name: str, **settings: Any) -> tuple[Any, Any]:
    """A model as it is, and one whose last layer is computed for one token."""
    plain, narrow = made(name, **settings), made(name, **settings)
    assert narrow_last_layer(narrow).why is None
    return plain, narrow


def texts(padding: Padding = "right") -> dict[str, Tensor]:
    ids = torch.randint(5, VOCABULARY, (3, max(LENGTHS)), generator=torch.Generator().manual_seed(3))
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    mask = mask.flip(1) if padding == "left" else mask
    return {"input_ids": ids * mask, "attention_mask": mask, "labels": torch.tensor([0, 1, 2])}


def passed(model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits and the gradients of all that trains."""
    model.zero_grad()
    found = model(**batch)
    found.loss.backward()
    return found.logits.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def assert_same(plain: Any, narrow: Any, batch: dict[str, Tensor], atol: float = 2e-6, rtol: float = 1e-3) -> None:
    expected, found = passed(plain, batch), passed(narrow, batch)
    torch.testing.assert_close(found[0], expected[0], atol=atol, rtol=rtol)
    assert found[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        torch.testing.assert_close(found[1][name], gradient, atol=atol, rtol=rtol, msg=name)


def calls(model: nn.Module) -> int:
    return sum(getattr(module, "calls", 0) for module in model.modules())


def test_the_table_holds_every_architecture() -> None:
    assert {*FIRST, *LAST, *OFF, *NO_CLASSIFIER} == set(BUILDERS)


@pytest.mark.parametrize("name", [*FIRST, *LAST])
def test_answers_loss_and_all_gradients_are_the_same(name: str) -> None:
    plain, narrow = pair(name)
    assert narrow_last_layer(narrow).computed_for == ("first token" if name in FIRST else "last token")
    for padding in ("right", "left") if name in LAST else ("right",):
        before = calls(narrow)
        assert_same(plain, narrow, texts(padding))
        assert calls(narrow) == before + 1, "and it really was computed for one token"
    whole = {name: part[:1] for name, part in texts().items()}  # nothing is padding
    assert_same(plain, narrow, whole)
    for model in (plain, narrow):
        model.set_attn_implementation("eager")
    assert_same(plain, narrow, texts())


@pytest.mark.parametrize("name", OFF)
def test_others_stay_as_they_are_and_it_is_said_why(name: str) -> None:
    model = made(name)
    classes = [type(module) for module in model.modules()]
    found = narrow_last_layer(model)
    assert found.computed_for == "every token"
    assert OFF[name] in str(found.why)
    assert [type(module) for module in model.modules()] == classes
    assert all("forward" not in vars(module) for module in model.modules())


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "modernbert"])
def test_in_bf16_the_answers_differ_by_its_rounding(name: str) -> None:
    plain, narrow = pair(name)
    with torch.autocast("cpu", torch.bfloat16):
        assert_same(plain, narrow, texts(), atol=0.05, rtol=0.1)


@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
def test_however_a_gpt_attends(attention: Literal["causal", "bidirectional"]) -> None:
    models = made("llama"), made("llama")
    for model in models:
        classify_at_last_token(model, attention)
    assert narrow_last_layer(models[1]).why is None
    for padding in ("right", "left"):
        assert_same(*models, texts(padding))
    assert_same(*models, {name: part[:1] for name, part in texts().items()})


@pytest.mark.parametrize("name", ["bert", *FUSED])
@pytest.mark.parametrize("parts", ["q", "k", "qk"])
def test_frozen_projections_cost_and_change_nothing(name: str, parts: str) -> None:
    plain, narrow = made(name), made(name)
    for model in (plain, narrow):
        orthogonalize_qk(model, init="headwise", parts=parts)
    assert narrow_last_layer(narrow).why is None
    assert_same(plain, narrow, texts())


@pytest.mark.parametrize("name", ["bert", "gpt2", "phi3", "modernbert"])
def test_what_is_counted_is_what_is_computed(name: str) -> None:
    """The last layer's queries, output and feed-forward for 3 tokens, not 21; and freezing saves its gradients of just those."""
    plain, narrow = pair(name)
    batch, every, read = texts(), 21, 3
    before, now = count_flops(plain, batch), count_flops(narrow, batch)
    last = attention_layers(plain)[-1]
    inside = plain.get_submodule(last.name.rpartition(".")[0] if name != "bert" else "bert.encoder.layer.1")
    weights = sum(p.numel() for p in inside.parameters() if p.ndim == 2)
    one_token = weights - sum(p.weight().numel() for p in last.of("kv"))
    width = last.of("q")[0].weight().shape[0]
    attention = 2 * 2 * width * (3 * 7 * 7 - 3 * 7)  # scores and what they weigh: 1 query of 7 keys each, not 7
    assert before.forward - now.forward == 2 * one_token * (every - read) + attention
    assert before.backward - now.backward == 2 * (before.forward - now.forward)

    queries, keys = (
        [sum(p.weight().numel() for p in layer.of(part)) for layer in attention_layers(plain)] for part in "qk"
    )
    orthogonalize_qk(narrow, init="keep")
    frozen = count_flops(narrow, batch)
    assert frozen.forward == now.forward
    assert now.backward - frozen.backward == 2 * (every * (queries[0] + sum(keys)) + read * queries[1])


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_adapters_on_queries_and_values(name: str) -> None:
    target = {"bert": ["query", "value"], "gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"]}[name]
    method = {"peft": {"type": "lora", "r": 2, "target_modules": target}}
    plain, narrow = (create_method(parse_method_use(method), 0).prepare(made(name)).eval() for _ in range(2))
    with torch.no_grad():
        for model in (plain, narrow):
            for number, (key, parameter) in enumerate(model.named_parameters()):
                if "lora_B" in key:
                    parameter.normal_(generator=torch.Generator().manual_seed(number))
    assert narrow_last_layer(narrow).why is None
    assert_same(plain, narrow, texts())
    assert calls(narrow)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_head_of_bpsom(name: str) -> None:
    plain, narrow = (BPSOMForSequenceClassification.of(made(name), hidden=12, grid=3) for _ in range(2))
    assert narrow_last_layer(narrow).why is None
    assert_same(plain, narrow, texts())
    assert calls(narrow)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_who_wants_all_tokens_gets_them(name: str) -> None:
    plain, narrow = pair(name)
    batch = {key: part for key, part in texts().items() if key != "labels"}
    before = calls(narrow)
    for asked in ({"output_hidden_states": True}, {"output_attentions": True}):
        for model in (plain, narrow):
            model.set_attn_implementation("eager")
        expected, found = plain(**batch, **asked), narrow(**batch, **asked)
        for kind in ("hidden_states", "attentions"):
            for one, other in zip(expected.get(kind) or (), found.get(kind) or (), strict=True):
                torch.testing.assert_close(one, other)
    torch.testing.assert_close(base_model(narrow)(**batch)[0], base_model(plain)(**batch)[0])
    seen: list[Tensor] = []
    for model in (plain, narrow):
        hook = base_model(model).register_forward_hook(lambda _, __, output: seen.append(output[0]))
        model(**batch)
        hook.remove()
    torch.testing.assert_close(*seen)
    narrow.train().gradient_checkpointing_enable()
    narrow(**batch).logits.sum().backward()
    assert calls(narrow) == before
    narrow.eval()(**batch)
    assert calls(narrow) == before + 1, "recorders that transformers left behind look only when asked"


def test_whoever_hooks_what_comes_after_the_layer_sees_what_the_plain_model_has() -> None:
    _, narrow = pair("bert")
    batch, before = texts(), calls(narrow)
    hooks = [
        narrow.classifier.register_full_backward_hook(lambda *_: None),
        base_model(narrow).pooler.register_forward_pre_hook(lambda *_: None),
        torch.nn.modules.module.register_module_forward_hook(lambda *_: None),
    ]
    while hooks:
        narrow(**batch)
        assert calls(narrow) == before
        hooks.pop().remove()
    narrow(**batch)
    assert calls(narrow) == before + 1


def test_threads_that_share_a_model_get_their_own_answers() -> None:
    _, narrow = pair("bert")
    batch = {key: part for key, part in texts().items() if key != "labels"}
    with torch.no_grad():
        expected = narrow(**batch).logits
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: narrow(**batch).logits, range(40)))
    assert all(torch.equal(one, expected) for one in found)


def test_a_head_that_reads_all_tokens_is_left_alone_even_if_it_starts_at_zero() -> None:
    model = made("modernbert", classifier_pooling="mean")
    nn.init.zeros_(model.classifier.weight)
    nn.init.zeros_(model.classifier.bias)
    head = {name: p.clone() for name, p in model.named_parameters()}
    assert narrow_last_layer(model).why == "ModernBertForSequenceClassification reads more than one token"
    assert all(torch.equal(p, head[name]) for name, p in model.named_parameters())


@pytest.mark.parametrize("head", ["ForTokenClassification", "ForMaskedLM", "Model"])
def test_models_that_are_no_classifiers_of_texts_are_left_alone(head: str) -> None:
    model = getattr(hf, f"Bert{head}")(build("bert").config)
    assert "not a classifier of texts" in str(narrow_last_layer(model).why)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_narrowed_model_is_saved_copied_and_pickled_as_the_plain_one(name: str, tmp_path: Path) -> None:
    plain, narrow = pair(name)
    narrow.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [type(plain).__name__]
    assert narrow.state_dict().keys() == plain.state_dict().keys()
    batch = texts()
    expected = plain(**batch).logits
    again = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    if name == "bert":
        torch.testing.assert_close(again(**batch).logits, expected)
        torch.testing.assert_close(pickle.loads(pickle.dumps(narrow))(**batch).logits, expected)
    copied = copy.deepcopy(narrow)
    assert calls(copied) == calls(narrow)
    torch.testing.assert_close(copied(**batch).logits, expected)
    assert narrow_last_layer(copied).why is None


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_dropout_is_of_the_same_distribution(name: str) -> None:
    """Mean and spread of the answers over many draws, to five standard errors."""
    plain, narrow = pair(name)
    draws = 2000
    batch = {key: part.repeat(draws, *[1] * (part.ndim - 1)) for key, part in texts().items()}
    found = []
    for model in (plain.train(), narrow.train()):
        torch.manual_seed(0)
        with torch.no_grad():
            found.append(model(**batch).logits.double().view(draws, 3, 3))
    error = found[0].std(0) * (2 / draws) ** 0.5
    assert ((found[0].mean(0) - found[1].mean(0)).abs() < 5 * error).all()
    assert ((found[0].std(0) / found[1].std(0) - 1).abs() < 5 / draws**0.5).all()
