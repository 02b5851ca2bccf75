"""Named arms: each readable, explained and what its name says; a bad one is refused loudly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from fairtune.methods import arms
from fairtune.methods.arms import family_of, named_arms, register_arm, register_family
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import parse_method_use
from fairtune.settings.values import ArmName
from tests.warm import light_run

PUBLISHED: dict[str, dict[str, Any]] = {
    "freeze-pretrained": {"init": "keep"},
    "oelm-freeze": {"init": "headwise"},
    "oelm-random": {"init": "normal"},
    "oelm-random-orthogonal": {"init": "headwise_random"},
    "oelm-global": {"init": "global"},
    "oelm-scale-matched": {"init": "headwise", "scale": "pretrained"},
}


@pytest.fixture(autouse=True)
def clean_arms() -> Iterator[None]:
    """What a test registers is forgotten again."""
    named_arms()
    before, families = dict(arms._arms), set(arms._families)
    yield
    arms._arms.clear()
    arms._arms.update(before)
    arms._families.clear()
    arms._families.update(families)


def test_oelm_and_its_controls_are_there_frozen_and_trainable() -> None:
    found = named_arms()
    for name, settings in PUBLISHED.items():
        assert found[name].uses == (parse_method_use({"orthogonal_qk": settings}),)
        twin = {"orthogonal_qk": {**settings, "freeze": False}}
        assert found[f"{name}-trainable"].uses == (parse_method_use(twin),)
        assert found[name].uses[0].config.model_dump()["freeze"] is True


def test_the_baseline_and_its_twin_have_no_methods() -> None:
    assert named_arms()["baseline"].uses == named_arms()["baseline-trainable"].uses == ()
    assert next(iter(named_arms())) == "baseline"


@pytest.mark.parametrize("name", sorted(named_arms()))
def test_every_named_arm_is_whole(name: str) -> None:
    arm = named_arms()[name]
    assert arm.name == name == TypeAdapter(ArmName).validate_python(name)
    assert all(isinstance(use, MethodUse) for use in arm.uses)
    assert arm.help.endswith(".")
    assert "\n" not in arm.help
    assert len(arm.help) <= 120


def test_no_two_named_arms_have_the_same_help() -> None:
    helps = [arm.help for arm in named_arms().values()]
    assert len(set(helps)) == len(helps)


@pytest.mark.parametrize("name", ["baseline-trainable", "freeze-pretrained-trainable"])
def test_arms_that_change_nothing_say_what_they_are_good_for(name: str) -> None:
    assert "A/A control" in named_arms()[name].help
    assert "noise" in named_arms()[name].help


def test_only_arms_that_change_nothing_are_called_a_a_controls() -> None:
    assert {arm.name for arm in named_arms().values() if "A/A" in arm.help} == {
        "baseline-trainable",
        "freeze-pretrained-trainable",
    }


@pytest.mark.parametrize(
    ("name", "help", "methods", "error", "words"),
    [
        ("", "Help.", [], ValueError, "could not have an arm of this name"),
        ("two words", "Help.", [], ValueError, "could not have an arm of this name"),
        ("../up", "Help.", [], ValueError, "could not have an arm of this name"),
        ("report", "Help.", [], ValueError, "could not have an arm of this name"),
        (3, "Help.", [], ValueError, "could not have an arm of this name"),
        ("baseline", "Help.", [], ValueError, "'baseline' is registered twice"),
        ("oelm-freeze", "Help.", [], ValueError, "'oelm-freeze' is registered twice"),
        ("new", "", [], ValueError, "its help must be one line, and not empty"),
        ("new", "  \n", [], ValueError, "its help must be one line, and not empty"),
        ("new", "One.\nTwo.", [], ValueError, "its help must be one line, and not empty"),
        ("new", "Help.", "orthogonal_qk", TypeError, "its methods must be a list"),
        ("new", "Help.", {"orthogonal_qk": {}}, TypeError, "its methods must be a list"),
        ("new", "Help.", None, TypeError, "its methods must be a list"),
    ],
)
def test_a_named_arm_that_would_surprise_is_refused(
    name: Any, help: str, methods: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        register_arm(name, help, methods)
    assert "new" not in named_arms()


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (["orthogonal_kq"], "unknown method"),
        ([{"orthogonal_qk": {"init": "head"}}], "init"),
        ([{"orthogonal_qk": {"frezze": True}}], "frezze"),
        ([3], "not a method"),
        (["orthogonal_qk", {"orthogonal_qk": {"init": "keep"}}], "both change the query and key projections"),
    ],
)
def test_methods_that_cannot_be_read_are_reported_when_arms_are_first_asked_for(methods: list[Any], words: str) -> None:
    register_arm("new", "Help.", methods)
    with pytest.raises(ValueError, match=rf"(?s)named arm 'new': .*{words}"):
        named_arms()


def test_a_registered_arm_is_there_at_once_and_the_answer_is_a_copy() -> None:
    register_arm("new", " Help. ", ("orthogonal_qk",))
    assert named_arms()["new"].help == "Help."
    assert named_arms()["new"].uses == (parse_method_use("orthogonal_qk"),)
    named_arms().clear()
    assert "new" in named_arms()


def test_a_family_is_the_beginning_of_names_that_promise_methods() -> None:
    assert family_of("oelm") == family_of("oelm2") == family_of("OELM-x") == "oelm"
    assert family_of("baseline") is None
    register_family("lora")
    assert family_of("lora-r8") == "lora"
    for bad in ("", "LoRA"):
        with pytest.raises(ValueError, match="in lower case"):
            register_family(bad)


def test_named_arms_need_no_heavy_import() -> None:
    code = (
        "import sys; from fairtune.methods.arms import named_arms; named_arms(); "
        "print([m for m in ('torch', 'transformers', 'peft') if m in sys.modules])"
    )
    done = light_run([sys.executable, "-c", code], text=True, check=True)
    assert done.stdout.strip() == "[]"
