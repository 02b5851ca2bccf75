"""The registry: loud about everything that would later surprise a user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, ValidationError
from pydantic_core import PydanticCustomError

from fairtune.methods import registry
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig, MethodUse
from fairtune.methods.orthogonal_qk import OrthogonalQKConfig
from fairtune.methods.registry import (
    conflicts,
    create_method,
    parse_method_use,
    register,
    registered,
)
from fairtune.study import fields, fragments
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study


class Focal(MethodConfig):
    """Weigh hard examples more."""

    gamma: float = Field(2.0, ge=0, description="How much more.")


class NoDocs(MethodConfig):
    gamma: float = Field(2.0, description="How much more.")


class Silent(MethodConfig):
    """Weigh hard examples more."""

    gamma: float = 2.0
    alpha: float = Field(1.0, description="Said.")


class NotAConfig:
    """Something else."""


@pytest.fixture(autouse=True)
def clean_registry() -> Iterator[None]:
    """What a test registers is forgotten again."""
    registered()
    before = dict(registry._registered)
    yield
    registry._registered.clear()
    registry._registered.update(before)
    fragments._schema.cache_clear()


CODE = "fairtune.methods.base:Method"


@pytest.mark.parametrize(
    ("name", "config", "code", "error", "words"),
    [
        ("Focal", Focal, CODE, ValueError, "lower-case letters"),
        ("fo cal", Focal, CODE, ValueError, "lower-case letters"),
        ("2made_up", Focal, CODE, ValueError, "lower-case letters"),
        ("", Focal, CODE, ValueError, "lower-case letters"),
        ("orthogonal_qk", Focal, CODE, ValueError, "registered twice"),
        ("made_up", NotAConfig, CODE, TypeError, "must derive from MethodConfig"),
        ("made_up", NoDocs, CODE, ValueError, "needs a docstring"),
        ("made_up", MethodConfig, CODE, ValueError, "needs a docstring"),
        ("made_up", Silent, CODE, ValueError, "fields without a description: gamma"),
        ("made_up", Focal, "fairtune.methods.base.Method", ValueError, "'module:Class'"),
        ("made_up", Focal, "a:b:c", ValueError, "'module:Class'"),
    ],
)
def test_a_registration_that_would_surprise_is_refused(
    name: str, config: Any, code: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        register(name, config, code)
    assert "made_up" not in registered()


def test_a_registered_method_can_be_used_in_a_study_at_once() -> None:
    register("made_up", Focal, CODE, claims=["loss"])
    fragments._schema.cache_clear()
    study = load_study(
        {
            "study": "s",
            "task": "t",
            "model": "m",
            "arms": {"baseline": {}, "x": {"methods": [{"made_up": {"gamma": 3}}]}},
        }
    )
    assert study.methods("x")[0].as_json() == {"made_up": {"gamma": 3.0}}
    method = create_method(study.methods("x")[0], seed=7)
    assert type(method) is Method
    assert (method.config, method.seed) == (Focal(gamma=3), 7)
    docs = {doc.path.strip(): doc.help for doc in fields.field_docs()}
    assert docs["made_up"] == "Weigh hard examples more."
    assert docs["made_up.gamma"] == "How much more."


def test_two_methods_that_claim_the_same_are_refused_with_the_place() -> None:
    register("made_up", Focal, CODE, claims=["loss", "labels"])
    register("smooth", Focal, CODE, claims=["loss"])
    register("other", Focal, CODE, claims=["embeddings"])
    arms = {"baseline": {}, "x": {"methods": ["made_up", "other", "smooth"]}, "y": {"methods": ["made_up", "other"]}}
    with pytest.raises(StudyError) as caught:
        load_study({"study": "s", "task": "t", "model": "m", "arms": arms})
    assert [p.path for p in caught.value.problems] == ["arms.x.methods[2]"]
    assert "'smooth' and 'made_up' both change the loss; keep one" in str(caught.value)


def test_conflicts_name_the_first_that_claimed() -> None:
    register("a", Focal, CODE, claims=["loss"])
    register("b", Focal, CODE, claims=["loss"])
    uses = [MethodUse(name, Focal()) for name in ("a", "b", "a")]
    assert conflicts(uses) == [(1, "a", "loss"), (2, "a", "loss")]
    assert conflicts(uses[:1]) == []


@pytest.mark.parametrize("value", ["orthogonal_qk", {"orthogonal_qk": None}, {"orthogonal_qk": {}}])
def test_a_method_may_be_named_alone(value: Any) -> None:
    assert parse_method_use(value) == MethodUse("orthogonal_qk", OrthogonalQKConfig())


def test_a_use_survives_its_json() -> None:
    use = MethodUse("orthogonal_qk", OrthogonalQKConfig(init="normal", std=0.5))
    assert parse_method_use(use.as_json()) == use
    assert parse_method_use(use) is use


@pytest.mark.parametrize("value", [3, None, [], {}, {"a": 1, "b": 2}, ["orthogonal_qk"]])
def test_what_is_no_method_is_refused(value: Any) -> None:
    with pytest.raises(PydanticCustomError):
        parse_method_use(value)


@pytest.mark.parametrize(
    "settings", [{"init": "x"}, {"std": 0}, {"std": -1}, {"std": True}, {"std": "0.1"}, {"freez": True}, 3]
)
def test_bad_settings_are_refused(settings: Any) -> None:
    with pytest.raises(ValidationError):
        parse_method_use({"orthogonal_qk": settings})


@pytest.mark.parametrize("name", sorted(registered()))
def test_every_registered_method_is_whole(name: str) -> None:
    registration = registered()[name]
    assert registration.help.endswith((".", ")"))
    assert registration.claims
    method = create_method(parse_method_use(name), seed=3)
    assert isinstance(method, Method)
    assert method.seed == 3
    room = Path(registry.__file__).parent
    found = re.fullmatch(r"fairtune\.methods\.(\w+)\..*", registration.implementation)
    assert found is not None
    assert (room / found[1] / "__init__.py").is_file(), "a method, or a few of a kind, has a folder of its own"


def test_the_default_hooks_change_nothing() -> None:
    import torch

    method, model = Method(Focal()), torch.nn.Linear(3, 2)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    groups = [{"params": list(model.parameters()), "lr": 1.0}]
    assert method.prepare(model) is model
    assert method.param_groups(groups, model) is groups
    assert method.loss(None, {}) is None
    assert method.around_backward(None, lambda: torch.tensor(5.0)) == 5.0
    with method.evaluating(model):
        pass
    assert method.state_dict() == {}
    method.load_state_dict({}, model)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(p.requires_grad for p in model.parameters())
