"""Methods and named arms are registered loudly: whatever would later surprise a user is refused at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import Field, TypeAdapter
from pydantic_core import PydanticCustomError

from fairtune.methods import arms, registry
from fairtune.methods.arms import named_arms
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import create_method, parse_method_use, register, registered
from fairtune.settings.values import ArmName
from fairtune.study import allowed, fields
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from tests.warm import light_run


class Made(MethodConfig):
    """Weigh hard examples more."""

    gamma: float = Field(2.0, ge=0, description="How much more.")


class NoDocs(MethodConfig):
    gamma: float = Field(2.0, description="How much more.")


class Silent(MethodConfig):
    """Weigh hard examples more."""

    gamma: float = 2.0


class Needing(MethodConfig):
    """Weigh hard examples more."""

    gamma: float = Field(description="How much more.")


def method(name: Any = "made_up", config: Any = Made, **attributes: Any) -> Any:
    return type("MadeUp", (Method,), {"name": name, "config_class": config, **attributes})


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten again."""
    named_arms()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(arms, "_arms", dict(arms._arms))
    yield
    allowed._study_schema.cache_clear()


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (method("Focal"), ValueError, "lower-case letters"),
        (method("2made_up"), ValueError, "lower-case letters"),
        (method(None), ValueError, "lower-case letters"),
        (method("orthogonal_qk"), ValueError, "registered twice"),
        (method(config=int), TypeError, "must derive from MethodConfig"),
        (method(config=None), TypeError, "must derive from MethodConfig"),
        (method(config=NoDocs), ValueError, "needs a docstring"),
        (method(config=MethodConfig), ValueError, "needs a docstring"),
        (method(config=Silent), ValueError, "fields without a description: gamma"),
        (method(config=Needing), ValueError, "fields without a default: gamma"),
        (method(kinds=("regress",)), ValueError, "kinds of task are classify, language_model"),
    ],
)
def test_a_method_that_would_surprise_is_refused(made: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        register(made)
    assert "made_up" not in registered()


def test_a_registered_method_can_be_used_in_a_study_at_once() -> None:
    made = register(method())
    allowed._study_schema.cache_clear()
    arm = {"methods": [{"made_up": {"gamma": 3}}]}
    (use,) = load_study({"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}, "x": arm}}).methods("x")
    assert use.as_json() == {"made_up": {"gamma": 3.0}}
    found = create_method(use, seed=7)
    assert (type(found), found.config, found.seed) == (made, Made(gamma=3), 7)
    docs = {doc.path: doc.help for doc in fields.field_docs()}
    assert (docs["made_up"], docs["made_up.gamma"]) == ("Weigh hard examples more.", "How much more.")


def test_methods_that_take_the_same_are_refused_with_the_place() -> None:
    for name, excluded in (("made_up", {"loss", "labels"}), ("smooth", {"loss"}), ("other", {"embeddings"})):
        register(method(name, excludes=frozenset(excluded)))
    found = {"baseline": {}, "x": {"methods": ["made_up", "other", "smooth"]}, "y": {"methods": ["made_up", "other"]}}
    with pytest.raises(StudyError) as caught:
        load_study({"study": "s", "task": "t", "model": "m", "arms": found})
    assert [p.path for p in caught.value.problems] == ["arms.x.methods[2]"]
    assert "'smooth' and 'made_up' both change the loss; keep one" in str(caught.value)


@pytest.mark.parametrize("value", [3, None, [], {}, {"a": 1, "b": 2}, ["orthogonal_qk"], "orthogonal_kq"])
def test_what_is_no_method_is_refused(value: Any) -> None:
    with pytest.raises(PydanticCustomError):
        parse_method_use(value)


def test_methods_and_arms_need_no_heavy_import() -> None:
    code = (
        "import sys; from fairtune.methods.arms import named_arms; named_arms(); "
        "print([m for m in ('torch', 'transformers', 'peft') if m in sys.modules])"
    )
    done = light_run([sys.executable, "-c", code], text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_oelm_and_its_controls_are_there_frozen_and_trainable() -> None:
    published: dict[str, dict[str, Any]] = {
        "freeze-pretrained": {"init": "keep"},
        "oelm-freeze": {"init": "headwise"},
        "oelm-random": {"init": "normal"},
        "oelm-random-orthogonal": {"init": "headwise_random"},
        "oelm-global": {"init": "global"},
        "oelm-scale-matched": {"init": "headwise", "scale": "pretrained"},
    }
    for name, settings in published.items():
        assert named_arms()[name].uses == (parse_method_use({"orthogonal_qk": settings}),)
        twin = {"orthogonal_qk": {**settings, "freeze": False}}
        assert named_arms()[f"{name}-trainable"].uses == (parse_method_use(twin),)


def test_every_named_arm_is_whole_and_the_baseline_is_first() -> None:
    found = named_arms()
    assert next(iter(found)) == "baseline"
    assert found["baseline"].uses == found["baseline-trainable"].uses == ()
    for name, arm in found.items():
        assert arm.name == name == TypeAdapter(ArmName).validate_python(name)
        assert arm.help.endswith(".")
        assert len(arm.help) <= 120
    assert len({arm.help for arm in found.values()}) == len(found)
    unchanged = {"baseline-trainable", "freeze-pretrained-trainable"}
    assert {name for name, arm in found.items() if "A/A control" in arm.help} == unchanged
