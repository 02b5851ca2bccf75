"""freeze: the chosen parts do not train, everything else does, also next to OELM."""

from __future__ import annotations

import pytest
from torch import nn

from fairtune.ledger.records import read_records
from fairtune.methods.arms import named_arms
from fairtune.methods.registry import create_method, parse_method_use
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401 - a fixture
from tests.models.architectures import BUILDERS, build


def frozen(model: nn.Module, *uses: object) -> set[str]:
    for use in uses:
        model = create_method(parse_method_use(use), 0).prepare(model)
    return {name for name, p in model.named_parameters() if not p.requires_grad}


def test_parts_are_found_by_depth() -> None:
    model = build("bert")
    names = {name for name, _ in model.named_parameters()}
    embeddings = {name for name in names if name.startswith("bert.embeddings.")}
    assert frozen(build("bert"), "freeze") == embeddings
    assert frozen(model, {"freeze": {"parts": ["embeddings", "lower"]}}) == embeddings | {
        name for name in names if ".layer.0." in name
    }
    (use,) = named_arms()["freeze-embeddings"].uses
    assert use == parse_method_use("freeze")


@pytest.mark.parametrize("name", BUILDERS)
def test_the_token_embeddings_of_every_architecture_are_frozen_and_something_trains(name: str) -> None:
    model = build(name)
    found = frozen(model, "freeze")
    assert not any(p.requires_grad for p in model.get_input_embeddings().parameters())
    assert 0 < len(found) < len(list(model.parameters()))


def test_a_head_that_is_tied_is_frozen_too_and_one_that_is_not_trains() -> None:
    tied, own = build("gpt2"), build("gpt-neox")
    frozen(tied, "freeze"), frozen(own, "freeze")
    assert not tied.get_output_embeddings().weight.requires_grad
    assert own.get_output_embeddings().weight.requires_grad


def test_oelm_with_frozen_embeddings_trains_and_is_recorded(toy: ToyStudy) -> None:  # noqa: F811
    oelm = {"orthogonal_qk": {"init": "headwise"}}
    both = frozen(build("bert"), oelm, "freeze")
    assert both == frozen(build("bert"), oelm) | frozen(build("bert"), "freeze")
    job = toy.job("runs", [oelm, {"freeze": {"parts": ["embeddings"]}}], steps=2, examples=32, eval_examples=10)
    assert perform_here(job)["status"] == "finished"
    (record,) = read_records(job.run, "freeze")
    assert record.figures["tied_head"] is False
    assert record.arrays["parameters"][0] > 0
