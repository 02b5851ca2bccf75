"""Adapters of the PEFT library in training: they and the head train, nothing else moves, and they fold away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fairtune.core.errors import ModelError, Stopped
from fairtune.ledger.predictions import read_predictions
from fairtune.methods.base import Method
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.loader import LoadedModel, load_classifier
from fairtune.models.parameters import checkpoint_name
from fairtune.models.sources import find_model
from tests.execution.conftest import ToyStudy, digests, perform_here

pytestmark = pytest.mark.slow

pytest.importorskip("peft")

ADAPTER_TYPES: dict[str, tuple[dict[str, Any], int]] = {
    "lora": ({"r": 4, "lora_dropout": 0.1}, 2 * 2 * (4 * 32 + 32 * 4)),
    "dora": ({"r": 4}, 2 * 2 * (4 * 32 + 32 * 4 + 32)),
    "ia3": ({}, 2 * (32 + 32 + 32 + 64)),
    "vera": ({"r": 16}, 2 * 2 * (16 + 32)),
    "oft": ({"oft_block_size": 8}, 2 * 2 * 4 * (8 * 7 // 2)),
    "ln_tuning": ({"target_modules": ["LayerNorm"]}, 5 * 2 * 32),
}
"""Settings of an adapter type, and how many parameters its adapters have in the tiny model."""
ADALORA = {"init_r": 6, "target_r": 2, "total_step": 8, "tinit": 1, "tfinal": 3, "deltaT": 1}
HEAD = 2 * 32 + 2
each_type = pytest.mark.parametrize("adapter_type", ADAPTER_TYPES)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads only get into each other's way in a model this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def load(tiny_model: Path) -> Callable[[], LoadedModel]:
    def _load() -> LoadedModel:
        torch.manual_seed(0)
        return load_classifier(find_model(str(tiny_model)), ("neg", "pos"))

    return _load


def method(seed: int = 0, **settings: Any) -> Method:
    return create_method(parse_method_use({"peft": settings}), seed)


def adapter_method(adapter_type: str, seed: int = 0) -> Method:
    return method(seed, type=adapter_type, **ADAPTER_TYPES[adapter_type][0])


def bits(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def train(model: nn.Module, steps: int = 3) -> None:
    model.train()
    optimizer = torch.optim.AdamW(trainable(model).values(), lr=1e-2)
    ids = torch.arange(5, 25).reshape(2, 10)
    for _ in range(steps):
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=torch.tensor([0, 1])).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@each_type
def test_adapters_and_the_head_train_and_nothing_else_moves(load: Any, adapter_type: str) -> None:
    loaded = load()
    checkpoint = bits(loaded.network)
    model = adapter_method(adapter_type).prepare(loaded.network)
    assert sum(p.numel() for p in trainable(model).values()) == ADAPTER_TYPES[adapter_type][1] + HEAD
    before = bits(model)
    train(model)
    after = model.state_dict()
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    assert moved == set(trainable(model)), "all of them move, and they alone"
    for name, tensor in after.items():
        known = checkpoint_name(name)
        if known in loaded.from_checkpoint:
            assert torch.equal(tensor, checkpoint[str(known)]), name


@each_type
def test_adapters_depend_on_the_seed_alone_and_disturb_no_other_draw(load: Any, adapter_type: str) -> None:
    def prepared(seed: int, noise: int) -> dict[str, torch.Tensor]:
        network = load().network
        torch.manual_seed(noise)
        state = torch.get_rng_state()
        model = adapter_method(adapter_type, seed).prepare(network)
        assert torch.equal(torch.get_rng_state(), state)
        return bits(model)

    first, again, other = prepared(1, 10), prepared(1, 20), prepared(2, 10)
    assert all(torch.equal(first[name], again[name]) for name in first)
    if adapter_type in (
        "lora",
        "dora",
    ):  # the other types start from constants, or from a key that is a field of its own
        assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.fixture
def toy(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> ToyStudy:
    """Eight steps, a state saved after every third, two evaluations."""
    source = {
        "study": "toy",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"steps": 8, "batch_size": 8, "lr": 1e-2, "max_length": 32, "evaluate": 4, "eval_examples": 20},
        "execution": {"checkpoint_every": 3, "devices": "cpu"},
    }
    return ToyStudy(source, tmp_path)


def interrupted(job: Any, looks: int) -> None:
    """Perform a run until it is asked to stop, then perform it to the end."""
    left = looks

    def check_stop() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Stopped

    with pytest.raises(Stopped):
        perform_here(job, check_stop)
    assert perform_here(job)["status"] == "finished"


@pytest.mark.parametrize("adapter_type", [*ADAPTER_TYPES, "adalora"])
def test_an_interrupted_run_ends_with_the_same_bits_and_folds_into_a_plain_model(
    toy: ToyStudy, adapter_type: str
) -> None:
    from transformers import AutoModelForSequenceClassification

    uses = [
        {
            "peft": {
                "type": adapter_type,
                **(ADAPTER_TYPES[adapter_type][0] if adapter_type in ADAPTER_TYPES else ADALORA),
            }
        }
    ]
    whole, broken = toy.job("whole", uses), toy.job("broken", uses)
    assert perform_here(whole)["status"] == "finished"
    interrupted(broken, looks=9)
    assert digests(broken.run.path) == digests(whole.run.path)

    model, info = AutoModelForSequenceClassification.from_pretrained(whole.run.model, output_loading_info=True)
    assert not any(info.values()), "nothing is missing, and nothing is left over"
    require_same_answers(model, whole)


def require_same_answers(model: Any, job: Any) -> None:
    """A model that was read back answers as the run recorded it."""
    from transformers import AutoTokenizer

    from fairtune.tasks import load_task

    tokenizer = AutoTokenizer.from_pretrained(job.run.model)
    stored = read_predictions(job.run.predictions, "test")
    split = load_task(**job.data).splits["test"]
    texts = dict(zip(split.ids, split.texts, strict=True))
    with torch.inference_mode():
        batch = tokenizer([texts[i][0] for i in stored.ids], padding=True, return_tensors="pt")
        logits = model.eval()(**batch).logits
    torch.testing.assert_close(logits, torch.from_numpy(stored.scores), atol=1e-5, rtol=1e-4)


def test_adalora_is_left_with_the_ranks_it_was_given(toy: ToyStudy) -> None:
    from fairtune.execution.prepare import prepare_run
    from fairtune.ledger.events import EventLog

    job = toy.job("runs", [{"peft": {"type": "adalora", **ADALORA}}], evaluate=8)
    job.run.path.mkdir(parents=True)
    run = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run
    while run.progress.step < 8:
        run.advance()
    ranks = [int((p != 0).sum()) for name, p in run.model.named_parameters() if "lora_E" in name]
    assert sum(ranks) == ADALORA["target_r"] * len(ranks)


def test_prompts_cannot_be_folded_in_and_are_saved_as_an_adapter(toy: ToyStudy) -> None:
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification

    job = toy.job("runs", [{"peft": {"type": "prompt_tuning", "num_virtual_tokens": 3}}])
    assert perform_here(job)["status"] == "finished"
    assert (job.run.model / "adapter_model.safetensors").is_file()
    card = json.loads(job.run.card.read_text())
    assert set(card["new"]) == {"prompt_encoder.default.embedding.weight", "classifier.weight", "classifier.bias"}
    assert card["changed"] == []
    base = AutoModelForSequenceClassification.from_pretrained(toy.source["model"], num_labels=2)
    require_same_answers(PeftModel.from_pretrained(base, job.run.model), job)


def frozen_qk(network: nn.Module, **settings: Any) -> nn.Module:
    return create_method(parse_method_use({"orthogonal_qk": settings}), 0).prepare(network)


def test_an_adapter_that_would_thaw_what_is_frozen_is_refused(load: Any) -> None:
    with pytest.raises(ModelError, match=r"attention\.self\.query is frozen by a method before peft.*`target_modules`"):
        method().prepare(frozen_qk(load().network))
    method().prepare(frozen_qk(load().network, freeze=False))


def test_every_part_of_a_fresh_head_trains() -> None:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    config = DistilBertConfig(vocab_size=40, dim=32, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=16)
    chosen = method(target_modules=["q_lin", "v_lin"], modules_to_save=["ffn.lin1"])
    model = chosen.prepare(DistilBertForSequenceClassification(config))
    whole = {str(checkpoint_name(name)) for name in trainable(model) if "lora_" not in name}
    assert {name.rpartition(".")[0] for name in whole} == {
        "pre_classifier", "classifier", "distilbert.transformer.layer.0.ffn.lin1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target_modules": ["qery"]}, r"peft lora: .*This model has the modules .*layer\.\*\.attention\.self\.query,"),
        ({"type": "ln_tuning"}, r"peft ln_tuning: Please specify `target_modules`.*attention\.output\.LayerNorm"),
        ({"r": 0}, r"peft lora: `r` should be a positive integer value but the value passed is 0\.$"),
        ({"type": "adaption_prompt"}, r"Unsupported model type for adaption prompt: 'bert'"),
        ({"type": "trainable_tokens", "token_indices": [3]}, r"the fresh head \(classifier\.bias, .* would stay as it"),
    ],
)
def test_what_does_not_fit_the_model_is_reported(load: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        method(**settings).prepare(load().network)
