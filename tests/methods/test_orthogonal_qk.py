"""orthogonal_qk: queries and keys, nothing else, and orthogonal to the last digit that fp32 has."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairtune.errors import ModelError, RunFailure
from fairtune.methods.base import Method
from fairtune.methods.orthogonal_qk.method import orthogonal_heads, orthogonality_error
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.attention import attention_layers
from fairtune.models.card import make_card
from fairtune.models.loading import LoadedModel, load_classifier
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


def method(seed: int = 0, **settings: Any) -> Method:
    return create_method(parse_method_use({"orthogonal_qk": settings}), seed)


def is_qk(name: str) -> bool:
    return ".self.query." in name or ".self.key." in name


def projections(model: nn.Module) -> list[tuple[nn.Linear, int]]:
    return [(part, layer.heads) for layer in attention_layers(model) for part in (layer.query, layer.key)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("init", ["keep", "headwise", "normal"])
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
    card = make_card(prepared, loaded)
    assert {c.name for c in card.changed} == changed
    assert not any(c.trainable for c in card.changed)
    layers, hidden = len(attention_layers(prepared)), prepared.config.hidden_size
    assert card.parameters.frozen == 2 * (hidden * hidden + hidden) * layers


@pytest.mark.parametrize("model", MODELS)
def test_every_head_of_every_layer_is_orthonormal_within_its_own_row_space(load: Any, model: str) -> None:
    network = load(model).network
    before = [part.weight.detach().double().clone() for part, _ in projections(network)]
    method(init="headwise").prepare(network)
    for old, (part, heads) in zip(before, projections(network), strict=True):
        new = part.weight.detach().reshape(heads, -1, old.shape[1])
        identity = torch.eye(new.shape[1])
        assert (new @ new.transpose(1, 2) - identity).abs().max() < 1e-5
        original, ours = old.reshape(new.shape), new.double()
        back = original @ ours.transpose(1, 2) @ ours
        worst = ((back - original).norm(dim=(1, 2)) / original.norm(dim=(1, 2))).max()
        assert worst < 1e-5, "the old rows lie in the space of the new"


def test_orthonormal_heads_are_left_as_they_are() -> None:
    generator = torch.Generator().manual_seed(1)
    heads = [torch.linalg.qr(torch.randn(32, 8, generator=generator, dtype=torch.float64))[0].T for _ in range(4)]
    weight = torch.cat(heads).float()
    assert torch.allclose(orthogonal_heads(weight, 4), weight, atol=1e-6)
    assert torch.allclose(orthogonal_heads(-weight, 4), -weight, atol=1e-6), "signs are kept, not only directions"


def test_the_first_row_of_a_head_keeps_its_direction() -> None:
    weight = torch.randn(32, 32, generator=torch.Generator().manual_seed(2))
    new = orthogonal_heads(weight, 4)
    for row in (0, 8, 16, 24):
        assert torch.allclose(new[row], weight[row] / weight[row].norm(), atol=1e-6)


def test_orthogonal_twice_is_orthogonal_once() -> None:
    once = orthogonal_heads(torch.randn(32, 32, generator=torch.Generator().manual_seed(3)), 4)
    assert torch.allclose(orthogonal_heads(once, 4), once, atol=1e-6)


def test_heads_do_not_mix() -> None:
    weight = torch.randn(32, 32, generator=torch.Generator().manual_seed(4))
    other = weight.clone()
    other[8:16] = torch.randn(8, 32, generator=torch.Generator().manual_seed(5))
    a, b = orthogonal_heads(weight, 4), orthogonal_heads(other, 4)
    assert torch.equal(a[:8], b[:8])
    assert torch.equal(a[16:], b[16:])
    assert not torch.equal(a[8:16], b[8:16])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_kind_of_number_stays(dtype: torch.dtype) -> None:
    assert orthogonal_heads(torch.randn(8, 8).to(dtype), 2).dtype == dtype


def test_weights_that_cannot_be_orthogonal_are_told() -> None:
    with pytest.raises(ModelError, match=r"layer\.query: 8 rows a head cannot be orthonormal in 4 dimensions"):
        orthogonal_heads(torch.randn(16, 4), 2, "layer.query")
    broken = torch.randn(8, 8)
    broken[0, 0] = float("nan")
    with pytest.raises(RunFailure, match="not orthonormal"):
        orthogonal_heads(broken, 2)


def test_the_error_is_measured_head_by_head() -> None:
    good = torch.eye(4)[:2]
    assert orthogonality_error(torch.stack([good, 2 * good])).tolist() == [0.0, 3.0]


def qk_weights(network: nn.Module) -> Tensor:
    return torch.cat([part.weight.detach().flatten() for part, _ in projections(network)])


@pytest.mark.parametrize(("settings", "std"), [({}, 0.02), ({"std": 0.1}, 0.1)])
def test_normal_weights_have_the_standard_deviation_asked_for(
    load: Any, settings: dict[str, float], std: float
) -> None:
    weights = qk_weights(method(init="normal", **settings).prepare(load().network))
    assert float(weights.std()) == pytest.approx(std, rel=0.05)
    assert abs(float(weights.mean())) < std * 0.06
    assert len(weights.unique()) > 0.99 * len(weights), "no layer repeats another's draws"


def test_normal_weights_depend_on_the_seed_alone(load: Any) -> None:
    def draw(seed: int, noise: int) -> Tensor:
        network = load().network
        torch.manual_seed(noise)
        return qk_weights(method(seed, init="normal").prepare(network))

    assert torch.equal(draw(1, 10), draw(1, 20)), "not on what was drawn before"
    assert not torch.equal(draw(1, 10), draw(2, 10))


def test_drawing_leaves_the_global_generator_alone(load: Any) -> None:
    network = load().network
    torch.manual_seed(5)
    before = torch.get_rng_state()
    method(init="normal").prepare(network)
    assert torch.equal(torch.get_rng_state(), before), "arms share every other draw"


def test_headwise_does_not_depend_on_the_seed(load: Any) -> None:
    first, second = (qk_weights(method(s).prepare(load().network)) for s in (1, 2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("init", ["keep", "headwise", "normal"])
def test_without_freezing_everything_trains(load: Any, init: str) -> None:
    network = method(init=init, freeze=False).prepare(load().network)
    assert all(p.requires_grad for p in network.parameters())


def test_keep_without_freeze_is_the_baseline(load: Any) -> None:
    loaded = load()
    make_card(method(init="keep", freeze=False).prepare(loaded.network), loaded).require_untouched()


def watch(network: nn.Module) -> dict[str, Tensor]:
    """What the projections of the first layer give for some text, and the model's answer."""
    seen: dict[str, Tensor] = {}
    layer = attention_layers(network)[0]
    handles = [
        getattr(layer, part).register_forward_hook(lambda _m, _i, out, part=part: seen.__setitem__(part, out.detach()))
        for part in ("query", "key", "value")
    ]
    with torch.no_grad():
        ids = torch.arange(5, 25).reshape(2, 10)
        seen["logits"] = network.eval()(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    for handle in handles:
        handle.remove()
    heads = layer.heads
    query, key = (seen[p].reshape(2, 10, heads, -1).transpose(1, 2) for p in ("query", "key"))
    seen["scores"] = query @ key.transpose(2, 3)
    return seen


@pytest.mark.parametrize("init", ["headwise", "normal"])
def test_attention_changes_and_values_do_not(load: Any, init: str) -> None:
    network = load().network
    before = watch(network)
    after = watch(method(init=init).prepare(network))
    for part in ("query", "key", "scores"):
        assert not torch.allclose(before[part], after[part], atol=1e-4)
    assert torch.equal(before["value"], after["value"])
    assert not torch.equal(before["logits"], after["logits"])


def test_keep_changes_no_answer(load: Any) -> None:
    network = load().network
    before = watch(network)["logits"]
    assert torch.equal(watch(method(init="keep").prepare(network))["logits"], before)


def test_frozen_weights_stay_and_the_rest_learns(load: Any) -> None:
    network = method(init="headwise").prepare(load().network).train()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    optimizer = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=1.0)
    ids = torch.arange(5, 25).reshape(2, 10)
    network(input_ids=ids, labels=torch.tensor([0, 1])).loss.backward()
    optimizer.step()
    after = network.state_dict()
    assert all(torch.equal(after[k], before[k]) for k in before if is_qk(k))
    values = [k for k in before if ".self.value.weight" in k]
    assert all(not torch.equal(after[k], before[k]) for k in values)


def test_a_model_without_such_layers_is_told() -> None:
    with pytest.raises(ModelError, match="no attention layer"):
        method().prepare(nn.Linear(2, 2))
