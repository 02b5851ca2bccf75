"""orthogonal_qk: queries and keys, nothing else, and orthogonal to the last digit that fp32 has."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairtune
from fairtune.core.errors import ModelError, RunFailure
from fairtune.methods.base import Method
from fairtune.methods.orthogonal_qk.weights import orthonormal_rows
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.attention import Projection, attention_layers
from fairtune.models.attention_geometry import orthogonality_error
from fairtune.models.init_card import make_init_card
from fairtune.models.loader import LoadedModel, load_classifier
from fairtune.models.sources import EMBEDDED_PACKAGE, find_model

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec(EMBEDDED_PACKAGE) is None, reason="the package of minilm is not installed"
)
MODELS = ["tiny", pytest.param("minilm", marks=needs_minilm)]


@pytest.fixture
def load(tiny_model: Path) -> Any:
    def _load(name: str = "tiny") -> LoadedModel:
        torch.manual_seed(0)
        return load_classifier(find_model(str(tiny_model) if name == "tiny" else name), ("neg", "pos"))

    return _load


def method(run_seed: int = 0, **settings: Any) -> Method:
    return create_method(parse_method_use({"orthogonal_qk": settings}), run_seed)


def is_qk(name: str) -> bool:
    return ".self.query." in name or ".self.key." in name


def projections(model: nn.Module) -> list[Projection]:
    return [projection for layer in attention_layers(model) for projection in layer.of("qk")]


def by_head(projection: Projection) -> Tensor:
    weight = projection.weight()
    return weight.double().reshape(projection.heads, -1, weight.shape[1])


def orthogonal_heads(weight: Tensor, heads: int, where: str = "weight") -> Tensor:
    return orthonormal_rows(weight.reshape(heads, -1, weight.shape[1]), where).reshape(weight.shape).to(weight.dtype)


INITS = ["keep", "headwise", "headwise_random", "global", "global_random", "normal"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("init", INITS)
def test_only_query_and_key_weights_change_and_only_they_are_frozen(load: Any, model: str, init: str) -> None:
    loaded = load(model)
    before = {k: v.clone() for k, v in loaded.network.state_dict().items()}
    prepared = method(init=init).prepare(loaded.network)
    assert prepared is loaded.network
    changed = {k for k, v in prepared.state_dict().items() if not torch.equal(v, before[k])}
    weights = {k for k in before if is_qk(k) and k.endswith("weight")}
    assert changed == (set() if init == "keep" else weights)
    frozen = {name for name, p in prepared.named_parameters() if not p.requires_grad}
    assert frozen == {k for k in before if is_qk(k)}, "weights and biases"
    card = make_init_card(prepared, loaded)
    assert {c.name for c in card.changed} == changed
    assert not any(c.trainable for c in card.changed)
    layers, hidden = len(attention_layers(prepared)), prepared.config.hidden_size
    assert card.parameters.frozen == 2 * (hidden * hidden + hidden) * layers


@pytest.mark.parametrize("model", MODELS)
def test_every_head_of_every_layer_is_orthonormal_within_its_own_row_space(load: Any, model: str) -> None:
    network = load(model).network
    before = [by_head(projection) for projection in projections(network)]
    method(init="headwise").prepare(network)
    for original, projection in zip(before, projections(network), strict=True):
        ours = by_head(projection)
        assert orthogonality_error(ours).max() < 1e-5
        back = original @ ours.transpose(1, 2) @ ours
        worst = ((back - original).norm(dim=(1, 2)) / original.norm(dim=(1, 2))).max()
        assert worst < 1e-5, "the old rows lie in the space of the new"


def test_weights_that_cannot_be_orthogonal_are_reported() -> None:
    with pytest.raises(ModelError, match=r"layer\.query: 8 rows cannot be orthonormal in 4 dimensions"):
        orthogonal_heads(torch.randn(16, 4), 2, "layer.query")
    broken = torch.randn(8, 8)
    broken[0, 0] = float("nan")
    with pytest.raises(RunFailure, match="not orthonormal"):
        orthogonal_heads(broken, 2)


def qk_weights(network: nn.Module) -> Tensor:
    return torch.cat([projection.weight().flatten() for projection in projections(network)])


def test_normal_weights_depend_on_the_seed_alone(load: Any) -> None:
    def draw(seed: int, noise: int) -> Tensor:
        network = load().network
        torch.manual_seed(noise)
        return qk_weights(method(seed, init="normal").prepare(network))

    assert torch.equal(draw(1, 10), draw(1, 20)), "not on what was drawn before"
    assert not torch.equal(draw(1, 10), draw(2, 10))


@pytest.mark.parametrize("init", ["global", "global_random"])
def test_global_rows_are_orthonormal_across_heads_too(load: Any, init: str) -> None:
    network = method(init=init).prepare(load().network)
    for projection in projections(network):
        assert orthogonality_error(projection.weight().double().unsqueeze(0)).max() < 1e-5
    method(init="headwise").prepare(network)
    assert orthogonality_error(by_head(projections(network)[0])).max() < 1e-5, "globally is also head by head"


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("model", MODELS)
def test_rows_have_the_length_that_scale_asks_for(load: Any, model: str, init: str) -> None:
    network = load(model).network
    checkpoint = [by_head(projection).norm(dim=2).mean(dim=1) for projection in projections(network)]
    method(init=init, scale="pretrained").prepare(network)
    for mean, projection in zip(checkpoint, projections(network), strict=True):
        norms = by_head(projection).norm(dim=2)
        torch.testing.assert_close(norms, mean[:, None].expand_as(norms), rtol=1e-5, atol=0)
    method(init="keep", scale="unit").prepare(network)
    for projection in projections(network):
        norms = by_head(projection).norm(dim=2)
        torch.testing.assert_close(norms, torch.ones_like(norms), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("layers", "chosen"), [("all", {0, 1}), ("0-1", {0, 1}), ("1-1", {1}), ([0], {0}), ([1, 0], {0, 1})]
)
def test_only_the_chosen_layers_change(load: Any, layers: Any, chosen: set[int]) -> None:
    network = load().network
    before = {k: v.clone() for k, v in network.state_dict().items()}
    method(layers=layers).prepare(network)
    frozen = {int(name.split(".")[3]) for name, p in network.named_parameters() if not p.requires_grad}
    changed = {int(k.split(".")[3]) for k, v in network.state_dict().items() if not torch.equal(v, before[k])}
    assert frozen == changed == chosen


def test_choosing_layers_or_parts_changes_no_other_draw(load: Any) -> None:
    whole = projections(method(init="normal").prepare(load().network))
    some = projections(method(init="normal", layers=[1], parts="k").prepare(load().network))
    assert torch.equal(whole[3].weight(), some[3].weight())
    assert not torch.equal(whole[0].weight(), some[0].weight())


@pytest.mark.parametrize("init", ["keep", "headwise", "normal"])
def test_feed_forward_weights_are_orthogonal_and_frozen_and_their_biases_train(load: Any, init: str) -> None:
    network = method(init=init, ffn="orthogonal", parts=[]).prepare(load().network)
    weights = {
        n: p for n, p in network.named_parameters() if ".intermediate." in n or re.search(r"\d\.output\.dense", n)
    }
    assert len(weights) == 8
    for name, parameter in weights.items():
        assert parameter.requires_grad == name.endswith("bias")
        if name.endswith("weight"):
            square = parameter.detach().double()
            gram = square.t() @ square if square.shape[0] > square.shape[1] else square @ square.t()
            torch.testing.assert_close(gram, torch.eye(len(gram)).double(), atol=1e-5, rtol=0)
    others = {n for n, p in network.named_parameters() if not p.requires_grad} - set(weights)
    assert not others, "queries and keys are not touched"


def test_a_bare_weight_becomes_what_the_published_function_makes_of_it() -> None:
    weight = nn.Parameter(torch.randn(12, 8, generator=torch.Generator().manual_seed(3)))
    expected = weight.detach().clone()
    for rows in (expected[:4], expected[4:8], expected[8:]):
        q, r = torch.linalg.qr(rows.T.clone(), mode="reduced")
        signs = torch.sign(torch.diagonal(r))
        signs[signs == 0] = 1
        rows.copy_((q * signs).T)
    assert fairtune.orthogonalize_heads_(weight, 3) is weight
    torch.testing.assert_close(weight.detach(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("shape", "heads"), [((12, 8), 5), ((12, 8), 0), ((12, 8), 1), ((12,), 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_bare_weight_that_has_no_such_heads_is_refused_and_left_as_it_is(
    shape: tuple[int, ...], heads: int, dtype: torch.dtype
) -> None:
    weight = torch.ones(shape, dtype=dtype)
    with pytest.raises(ModelError):
        fairtune.orthogonalize_heads_(weight, heads)
    assert bool((weight == 1).all())
