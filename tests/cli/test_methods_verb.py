"""`fairtune methods`: every method and named arm, each with its own text, at once and without torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
from tests.made_plugin import ADDS
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.plugins import STATE, forget_plugin
from fairtune.methods.arms import named_arms
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import registered
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml


def call(*words: str, **environment: str) -> Any:
    return CliRunner().invoke(app, ["methods", *words], env=environment)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_all_methods_and_named_arms_are_listed_with_their_help() -> None:
    answer = call()
    assert answer.exit_code == 0
    shown = squeezed(answer.output)
    for method in registered().values():
        assert f"{method.name} {squeezed(method.help().splitlines()[0])}" in shown
    for arm in named_arms().values():
        assert f"{arm.name} {arm.help}" in shown
    assert "methods: [{orthogonal_qk: {init: keep, freeze: false}}]" in shown


@pytest.mark.parametrize("name", sorted(registered()))
def test_a_method_is_shown_with_every_setting(name: str) -> None:
    shown = squeezed(call(name).output)
    config = registered()[name].config_class
    for field, info in config.model_fields.items():
        assert f"{field} {squeezed(info.description or '')}" in shown
    assert shown.count("default: ") >= len(config.model_fields)


def test_what_a_step_costs_more_is_reported() -> None:
    assert "A step takes about 2 times as long" in squeezed(call("fgm").output)
    assert "times as long" not in call("focal").output
    factors = {name: facts["step_factor"] for name, facts in json.loads(call("--json").output)["methods"].items()}
    assert {name for name, factor in factors.items() if factor > 1} == {"fgm", "pgd", "freelb", "rdrop"}


def test_allowed_values_and_defaults_are_reported_as_yaml_has_them() -> None:
    shown = squeezed(call("orthogonal_qk").output)
    assert "allowed: keep, headwise, headwise_random, global, global_random or normal; default: headwise" in shown
    assert "allowed: true or false; default: true" in shown
    assert "allowed: false or orthogonal; default: false" in shown
    assert "allowed: unit, pretrained or null; default: null" in shown
    assert "my-arm: {methods: [orthogonal_qk]}" in shown
    assert "Named arms that use it: freeze-pretrained, " in shown


@pytest.mark.parametrize("name", sorted(named_arms()))
def test_a_named_arm_is_shown_with_yaml_that_can_be_pasted(name: str) -> None:
    answer = call(name).output
    assert named_arms()[name].help in squeezed(answer)
    pasted = answer.partition("In a study:\n")[2].partition("\n\n")[0]
    study = load_study({"study": "s", "task": "t", "model": "m", **parse_yaml(pasted).data})
    assert study.methods(name) == named_arms()[name].uses
    line = next(line for line in answer.splitlines() if line.startswith(("methods: ", "learner: ")))
    written = load_study(
        {"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}, "x": parse_yaml(line).data}}
    )
    assert (written.methods("x"), written.learner("x")) == (study.methods(name), study.learner(name))
    other = parse_yaml(answer.partition("settings of its own:\n")[2]).data
    renamed = load_study({"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}, **other}})
    assert (renamed.methods("my-arm"), renamed.learner("my-arm")) == (study.methods(name), study.learner(name))


def test_json_has_one_shape_and_a_name_narrows_it() -> None:
    everything = json.loads(call("--json").output)
    assert set(everything["methods"]) == set(registered())
    assert set(everything["arms"]) == set(named_arms())
    method = json.loads(call("orthogonal_qk", "--json").output)
    assert method == {"methods": {"orthogonal_qk": everything["methods"]["orthogonal_qk"]}, "arms": {}}
    assert method["methods"]["orthogonal_qk"]["fields"]["freeze"] == {
        "help": "Freeze the weights and biases of Q and K.",
        "allowed": "true or false",
        "default": "true",
    }
    arm = json.loads(call("oelm-freeze", "--json").output)
    assert arm == {"methods": {}, "arms": {"oelm-freeze": everything["arms"]["oelm-freeze"]}}
    assert arm["arms"]["oelm-freeze"]["methods"] == [{"orthogonal_qk": {"init": "headwise"}}]
    assert "oelm-freeze: {}" in arm["arms"]["oelm-freeze"]["yaml"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("oelm-freze", "Did you mean 'oelm-freeze'?"),
        ("orthogonal-qk", "Did you mean 'orthogonal_qk'?"),
        ("zzz", "no method or named arm 'zzz'; there are: "),
        ("", "no method or named arm ''"),
        ("[bold]", "no method or named arm '[bold]'"),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest_and_exit_code_2(name: str, expected: str) -> None:
    answer = call(name)
    assert answer.exit_code == 2
    assert expected in answer.output
    assert "Traceback" not in answer.output
    as_json = CliRunner().invoke(app, ["methods", name, "--json"])
    assert as_json.exit_code == 2
    assert expected in json.loads(as_json.stdout)["error"]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A study file whose arms use a method of the module beside it."""
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    (tmp_path / "mine_alone.py").write_text(ADDS.format(name="mine_alone"))
    file = tmp_path / "s.yaml"
    file.write_text(
        "study: s\ntask: t\nmodel: m\nplugins: [mine_alone]\narms: {baseline: {}, x: {methods: [mine_alone]}}\n"
    )
    yield str(file)
    forget_plugin("mine_alone")


def test_a_plug_in_that_a_study_names_is_shown_once_it_is_allowed(study: str) -> None:
    refused = call("mine_alone", "--study", study)
    assert refused.exit_code == 2
    assert "mine_alone.py" in refused.output
    assert "mine_alone" not in registered(), "nothing was executed"
    assert "--study FILE" in call("mine_alone").output
    shown = squeezed(call("mine_alone", "--study", study, "--allow-plugins").output)
    assert "A method that does nothing." in shown
    assert "mine_alone.py" in shown
    helped = CliRunner().invoke(app, ["help", "study", "mine_alone", "--study", study])
    assert (helped.exit_code, helped.output.splitlines()[0]) == (0, "mine_alone")


def test_the_hooks_of_a_method_are_all_explained() -> None:
    docs = {doc["name"]: doc for doc in json.loads(call("--hooks", "--json").output)}
    for owner in (Method, MethodConfig):
        hooks = [name for name, value in vars(owner).items() if not name.startswith("_") and isfunction(value)]
        assert [name for name in hooks if not docs[f"{owner.__name__}.{name}"]["help"]] == []
    assert docs["Method.after_step"]["signature"] == "after_step(self, moment: Moment) -> None"
    assert "seed" in docs["Method"]["help"]
    assert {"Moment", "Step", "Declared", "MethodConfig.clash"} <= docs.keys()
    shown = call("--hooks").output
    assert all(doc["signature"] in shown for doc in docs.values())


def test_output_is_plain_where_it_is_no_terminal_and_where_colour_is_not_wanted() -> None:
    assert "\x1b[" not in call().output
    coloured = call(FORCE_COLOR="1", TERM="xterm-256color").output
    assert "\x1b[36m" in coloured
    assert "\x1b[36m" not in call(FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1").output


@pytest.mark.parametrize("words", [[], ["orthogonal_qk"], ["oelm-freeze"], ["--json"], ["--hooks"], ["nothing"]])
def test_it_does_not_import_torch(words: list[str]) -> None:
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"try: app({['methods', *words]!r})\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'transformers', 'scipy', 'matplotlib', 'peft') if m in sys.modules])"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=60)
    assert done.stdout.strip().endswith("[]"), done.stdout[-300:] + done.stderr
