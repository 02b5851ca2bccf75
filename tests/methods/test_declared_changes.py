"""Every arm's start is proved: what differs from the checkpoint is what its methods declare, to the row, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fairtune.core.errors import RunFailure
from fairtune.execution.start import Start, build_start
from fairtune.methods import registry
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import parse_method_use, register
from fairtune.models.declarations import Declared
from fairtune.models.sources import find_model
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401
from tests.models import architectures

QUERY = "bert.encoder.layer.0.attention.self.query.weight"
NORM = "bert.encoder.layer.1.output.LayerNorm.weight"


class RogueConfig(MethodConfig):
    """Touches what it does not say."""


class Rogue(Method):
    """Does to a model what a test asks, and declares what the test lets it."""

    name, config_class = "rogue", RogueConfig
    act: Callable[[nn.Module], None]
    declares: Sequence[Declared] = ()

    def prepare(self, model: nn.Module) -> nn.Module:
        with torch.no_grad():
            type(self).act(model)
        return model

    def changes(self, model: nn.Module) -> Sequence[Declared]:  # noqa: ARG002
        return self.declares


@pytest.fixture
def rogue(monkeypatch: pytest.MonkeyPatch) -> type[Rogue]:
    registry.registered()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    register(Rogue)
    monkeypatch.setattr(Rogue, "declares", ())
    monkeypatch.setattr(Rogue, "act", staticmethod(lambda _: None), raising=False)
    return Rogue


def start(folder: Path, *methods: Any, labels: tuple[str, ...] = ("a", "b")) -> Start:
    return build_start(find_model(str(folder)), [parse_method_use(method) for method in methods], 0, labels)


def nudge(name: str) -> Callable[[nn.Module], None]:
    """Move one element to the next number that there is."""

    def act(model: nn.Module) -> None:
        tensor = model.state_dict()[name].view(-1)
        tensor[0] = torch.nextafter(tensor[0], torch.tensor(10.0))

    return act


@pytest.mark.parametrize("name", [QUERY, NORM, "bert.embeddings.word_embeddings.weight", "classifier.weight"])
def test_a_method_that_touches_an_undeclared_tensor_fails_its_run(tiny_model: Path, rogue: Any, name: str) -> None:
    rogue.act = staticmethod(nudge(name))
    with pytest.raises(RunFailure) as caught:
        start(tiny_model, "ema", "rogue").describe()
    assert (
        f"1 tensors differ from the checkpoint at step 0 though no method of this arm declares to change them ({name})"
        in str(caught.value)
    )
    assert "ema declares none; rogue declares none" in str(caught.value)


def test_what_is_declared_may_change(tiny_model: Path, rogue: Any) -> None:
    rogue.act, rogue.declares = staticmethod(nudge(NORM)), [Declared(NORM)]
    card = start(tiny_model, "rogue").describe()
    assert [change["name"] for change in card["changed"]] == [NORM]
    assert "undeclared" not in card


@pytest.mark.parametrize("freeze", [True, False], ids=["cut", "whole"])
@pytest.mark.parametrize("name", ["gpt2-classifier", "modernbert", "bloom", "phi3", "falcon-by-group"])
def test_of_a_fused_weight_only_the_declared_rows_may_change(
    tmp_path: Path, rogue: Any, name: str, freeze: bool
) -> None:
    architectures.build(name).save_pretrained(tmp_path)
    only_queries = {"orthogonal_qk": {"parts": ["q"], "layers": [1], "freeze": freeze}}
    found = start(tmp_path, only_queries)
    card = found.describe()
    (change,) = card["changed"]
    ((_, (declared,)),) = found.declared.methods
    assert declared.name == change["name"]
    assert declared.rows is not None
    place = [0, 0]
    size = found.model.state_dict()[change["name"]].shape[declared.dim]
    place[declared.dim] = next(row for row in reversed(range(size)) if row not in declared.rows.tolist())

    def touch(model: nn.Module) -> None:
        state = model.state_dict()
        state[change["name"]][tuple(place)] += 1
        model.load_state_dict(state)

    rogue.act = staticmethod(touch)
    with pytest.raises(RunFailure, match=rf"1 tensors differ .*\({change['name']}\)"):
        start(tmp_path, only_queries, "rogue").describe()


KNOWN = (
    *architectures.FUSED,
    "bert",
    "albert",
    "distilbert",
    "deberta-v3",
    "t5",
    "mt5-encoder",
    "bart",
    "llama",
    "mixtral",
)
INITS: list[dict[str, Any]] = [{"init": "normal", "freeze": False}, {"init": "keep", "scale": "unit"}, {"init": "keep"}]


@pytest.mark.parametrize(
    ("name", "settings"),
    [*((name, {}) for name in KNOWN), *((name, init) for name in ("bert", "gpt2") for init in INITS)],
)
def test_orthogonal_qk_declares_what_it_changes(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    architectures.build(name).save_pretrained(tmp_path)
    found = start(tmp_path, {"orthogonal_qk": settings})
    changed = {change["name"] for change in found.describe()["changed"]}
    declared = {one.name for _, own in found.declared.methods for one in own}
    assert changed == declared & found.loaded.from_checkpoint
    assert bool(changed) == (settings != {"init": "keep"})


@pytest.mark.parametrize(
    "methods",
    [
        [{"orthogonal_qk": {"ffn": "orthogonal", "parts": []}}],
        [{"orthogonal_qk": {"ffn": "orthogonal", "layers": [0]}}],
        [{"bpsom": {"hidden": 8, "grid": 3}}],
        [{"peft": {"type": "lora", "init_lora_weights": "pissa"}}],
        [{"peft": {"type": "lora", "init_lora_weights": "olora"}}],
        [{"peft": {"type": "lora"}}, "ema"],
        [{"orthogonal_qk": {}}, {"bpsom": {"hidden": 8, "grid": 3}}, {"peft": {"target_modules": ["value"]}}],
        ["bitfit", {"layerwise_lr": {}}],
    ],
    ids=["ffn", "ffn and qk", "bpsom", "pissa", "olora", "lora", "three", "no change"],
)
def test_methods_of_ours_declare_what_they_do(tiny_model: Path, methods: list[Any]) -> None:
    if any("peft" in use for use in methods):
        pytest.importorskip("peft")
    start(tiny_model, *methods).describe()


def test_a_run_of_a_rogue_method_is_recorded_as_failed(toy: ToyStudy, rogue: Any) -> None:  # noqa: F811
    rogue.act = staticmethod(nudge(NORM))
    job = toy.job("runs", ["rogue"], steps=1, examples=32, eval_examples=10)
    result = perform_here(job)
    assert (result["status"], result["kind"]) == ("failed", "run")
    assert NORM in result["reason"]
    assert json.loads(job.run.result.read_text())["reason"] == result["reason"]
