"""orthogonal_qk: queries and keys, nothing else, and orthogonal to the last digit that fp32 has."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

import fairtune
from fairtune.core.errors import ModelError, RunFailure
from fairtune.methods.base import Method
from fairtune.methods.orthogonal_qk.method import orthonormal_rows, semi_orthogonal
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
def test_the_kind_of_number_stays(load: Any, dtype: torch.dtype) -> None:
    network = method(init="headwise").prepare(load().network.to(dtype))
    assert {p.dtype for p in network.parameters()} == {dtype}


def test_weights_that_cannot_be_orthogonal_are_reported() -> None:
    with pytest.raises(ModelError, match=r"layer\.query: 8 rows cannot be orthonormal in 4 dimensions"):
        orthogonal_heads(torch.randn(16, 4), 2, "layer.query")
    broken = torch.randn(8, 8)
    broken[0, 0] = float("nan")
    with pytest.raises(RunFailure, match="not orthonormal"):
        orthogonal_heads(broken, 2)


def test_the_error_is_measured_head_by_head() -> None:
    good = torch.eye(4)[:2]
    assert orthogonality_error(torch.stack([good, 2 * good])).tolist() == [0.0, 3.0]


def qk_weights(network: nn.Module) -> Tensor:
    return torch.cat([projection.weight().flatten() for projection in projections(network)])


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


@pytest.mark.parametrize("init", INITS)
def test_without_freezing_everything_trains(load: Any, init: str) -> None:
    network = method(init=init, freeze=False).prepare(load().network)
    assert all(p.requires_grad for p in network.parameters())


def test_keep_without_freeze_is_the_baseline(load: Any) -> None:
    loaded = load()
    make_init_card(method(init="keep", freeze=False).prepare(loaded.network), loaded).require_untouched()


def answer(network: nn.Module) -> Tensor:
    ids = torch.arange(5, 25).reshape(2, 10)
    with torch.no_grad():
        logits: Tensor = network.eval()(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    return logits


def test_keep_changes_no_answer(load: Any) -> None:
    network = load().network
    before = answer(network)
    assert torch.equal(answer(method(init="keep").prepare(network)), before)


@pytest.mark.parametrize("init", ["global", "global_random"])
def test_global_rows_are_orthonormal_across_heads_too(load: Any, init: str) -> None:
    network = method(init=init).prepare(load().network)
    for projection in projections(network):
        assert orthogonality_error(projection.weight().double().unsqueeze(0)).max() < 1e-5
    method(init="headwise").prepare(network)
    assert orthogonality_error(by_head(projections(network)[0])).max() < 1e-5, "globally is also head by head"


def test_headwise_rows_are_not_orthogonal_across_heads(load: Any) -> None:
    network = method(init="headwise").prepare(load().network)
    assert orthogonality_error(projections(network)[0].weight().double().unsqueeze(0)).max() > 0.1


@pytest.mark.parametrize("init", ["headwise_random", "global_random", "normal"])
def test_random_inits_throw_the_checkpoint_away(load: Any, init: str) -> None:
    first, second = load().network, load().network
    with torch.no_grad():
        for projection in projections(second):
            projection.write(torch.randn_like(projection.weight()))
    for network in (first, second):
        method(init=init).prepare(network)
    assert torch.equal(qk_weights(first), qk_weights(second))


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


def test_scale_changes_length_and_not_direction(load: Any) -> None:
    plain, scaled = (method(scale=s).prepare(load().network) for s in (None, "pretrained"))
    for a, b in zip(projections(plain), projections(scaled), strict=True):
        cosine = torch.nn.functional.cosine_similarity(a.weight().double(), b.weight().double(), dim=1)
        torch.testing.assert_close(cosine, torch.ones_like(cosine))


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


def test_a_layer_that_is_not_there_is_reported(load: Any) -> None:
    with pytest.raises(ModelError, match="names block 7, but BertForSequenceClassification has 2 blocks, 0 to 1"):
        method(layers=[0, 7]).prepare(load().network)


@pytest.mark.parametrize("part", ["q", "k"])
def test_one_part_may_change_alone(load: Any, part: str) -> None:
    network = method(parts=part).prepare(load().network)
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    assert frozen
    assert all((".self.query." if part == "q" else ".self.key.") in name for name in frozen)


def test_choosing_layers_or_parts_changes_no_other_draw(load: Any) -> None:
    whole = projections(method(init="normal").prepare(load().network))
    some = projections(method(init="normal", layers=[1], parts="k").prepare(load().network))
    assert torch.equal(whole[3].weight(), some[3].weight())
    assert not torch.equal(whole[0].weight(), some[0].weight())


def test_a_seed_of_its_own_is_the_same_in_every_run(load: Any) -> None:
    first, second = (qk_weights(method(s, init="normal", seed=7).prepare(load().network)) for s in (1, 2))
    assert torch.equal(first, second)


@pytest.mark.parametrize(("settings", "expected"), [
    ({"parts": []}, "nothing would change"),
    ({"parts": ["q", "q"]}, "same part twice"),
    ({"parts": ["v"]}, "parts"),
    ({"layers": "3-1"}, "ends before it starts"),
    ({"layers": []}, "layers"),
    ({"layers": [-1]}, "layers"),
    ({"init": "orthonormal"}, "init"),
    ({"scale": "double"}, "scale"),
    ({"std": 0.0}, "std"),
    ({"ffn": True}, "ffn"),
    ({"seed": -1}, "seed"),
])  # fmt: skip
def test_impossible_settings_are_refused_when_they_are_read(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        parse_method_use({"orthogonal_qk": settings})


def test_tall_and_wide_matrices_become_semi_orthogonal() -> None:
    tall = torch.randn(12, 4, generator=torch.Generator().manual_seed(6)).double()
    for new in (semi_orthogonal(tall), semi_orthogonal(tall.t()).t()):
        torch.testing.assert_close(new.t() @ new, torch.eye(4).double())


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


def test_feed_forward_and_attention_together(load: Any) -> None:
    network = method(ffn="orthogonal", layers=[1]).prepare(load().network)
    frozen = {n.partition("layer.")[2] for n, p in network.named_parameters() if not p.requires_grad}
    assert frozen == {
        "1.intermediate.dense.weight", "1.output.dense.weight",
        *(f"1.attention.self.{part}.{kind}" for part in ("query", "key") for kind in ("weight", "bias")),
    }  # fmt: skip


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


def test_a_model_without_such_layers_is_reported() -> None:
    with pytest.raises(ModelError, match="no attention layer"):
        method().prepare(nn.Linear(2, 2))


# -- by their published names ------------------------------------------------------------------------------------------


def test_orthogonal_is_another_name_for_headwise() -> None:
    assert parse_method_use({"orthogonal_qk": {"init": "orthogonal"}}) == parse_method_use("orthogonal_qk")
    assert parse_method_use({"orthogonal_qk": {"init": "orthogonal"}}).as_json()["orthogonal_qk"]["init"] == "headwise"


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


@pytest.mark.parametrize(("shape", "heads"), [((12, 8), 5), ((12, 8), 0), ((12, 8), 1), ((12,), 3), ((12, 8), 4.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_bare_weight_that_has_no_such_heads_is_refused_and_left_as_it_is(
    shape: tuple[int, ...], heads: int, dtype: torch.dtype
) -> None:
    weight = torch.ones(shape, dtype=dtype)
    with pytest.raises(ModelError):
        fairtune.orthogonalize_heads_(weight, heads)
    assert bool((weight == 1).all())
