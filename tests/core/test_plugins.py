"""Plug-ins are found in the parent and in workers, named in plan and signature, and refused in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.made_plugin import ADDS, install

from fairtune.core.errors import FairtuneError
from fairtune.core.plugins import (
    Plugin,
    PluginError,
    find_plugin,
    forget_plugin,
    load_plugin,
    plugin_of,
    plugins_allowed,
    take_plugins,
)
from fairtune.methods.registry import registered
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.testing.runs import toy_source

pytestmark = pytest.mark.usefixtures("forgotten_plugins", "trusted")


@pytest.fixture
def trusted() -> Iterator[None]:
    """The author's own plug-ins; who is asked about others is in test_plugin_consent.py."""
    with plugins_allowed():
        yield


def load(name: str, folder: Path) -> Plugin:
    return load_plugin(find_plugin(name, folder))


@pytest.fixture
def study(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> Path:
    """A study file beside `mine.py`, which adds the method `nothing`."""
    (tmp_path / "mine.py").write_text(ADDS.format(name="nothing"))
    source = toy_source(tiny_model, tiny_task) | {"plugins": ["mine"], "seeds": [0]}
    source["train"] |= {"steps": 2, "eval_examples": 20}
    source["arms"] = {"baseline": {}, "mine": {"methods": ["nothing"]}}
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    return file


def test_a_module_beside_the_study_adds_a_method_and_is_named_in_the_plan(study: Path) -> None:
    plan = make_plan(load_study(study))
    plain, mine = plan.runs
    (plugin,) = plan.plugins
    assert (plugin.module, plugin.file) == ("mine", str(study.parent / "mine.py"))
    assert mine.settings.as_json()["plugins"] == [{"module": "mine", "sha256": plugin.sha256}]
    assert f"|plugin:mine@{plugin.sha256[:8]}|" in mine.signature
    assert "plugins" not in plain.settings.as_json(), "an arm that does not use it is the same run as without it"
    assert "plugin" not in plain.signature
    assert plan.as_json()["plugins"] == [plugin.as_json()]
    assert not (study.parent / "__pycache__").exists()


def test_a_changed_plugin_is_another_run(study: Path) -> None:
    before = make_plan(load_study(study))
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + "# changed\n")
    after = make_plan(load_study(study))
    assert after.hash != before.hash
    assert [a.key == b.key for a, b in zip(before.runs, after.runs, strict=True)] == [True, False]


def test_a_package_is_hashed_as_a_whole_and_may_hold_several(tmp_path: Path) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(ADDS.format(name=name))
    found = [load(f"several.{name}", tmp_path) for name in ("one", "two")]
    assert found[0].sha256 == found[1].sha256
    assert [plugin_of("method", name) for name in ("one", "two")] == found
    (folder / "two.py").write_text(ADDS.format(name="two") + "#\n")
    assert load("several.one", tmp_path).sha256 != found[0].sha256


BROKEN = {
    "a syntax error": ("def (", r"SyntaxError: invalid syntax \(mine\.py, line 1\)\.$"),
    "an exception": ("\n1 / 0", r"ZeroDivisionError: division by zero \(mine\.py, line 2\)\.$"),
    "nothing": ("x = 1", r"importing it registers nothing"),
    "a taken name": (ADDS.format(name="focal"), r"method 'focal' is registered twice \(mine\.py, line 9\)\.$"),
}


@pytest.mark.parametrize(("content", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plugin_is_one_sentence_with_its_line(study: Path, content: str, expected: str) -> None:
    (study.parent / "mine.py").write_text(content)
    with pytest.raises(FairtuneError, match=expected) as caught:
        load_study(study)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{study}:"), "file and line of the study come first"
    assert f"plugins[0]: plug-in mine ({study.parent / 'mine.py'})" in str(caught.value)


def test_a_fixed_plugin_can_be_read_again(study: Path) -> None:
    good = (study.parent / "mine.py").read_text()
    (study.parent / "mine.py").write_text(good + "\nraise RuntimeError('at the end')\n")
    with pytest.raises(FairtuneError, match="at the end"):
        load_study(study)
    assert "nothing" not in registered(), "half of a plug-in is none"
    (study.parent / "mine.py").write_text(good)
    load_study(study)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("not_there", r"there is no not_there\.py next to the study file .* Python finds no module 'not_there'"),
        ("../mine.py", "give the name of a Python module, such as my_module"),
        ("json", "importing it registers nothing"),
    ],
)
def test_a_name_that_is_no_plugin_is_refused(study: Path, name: str, expected: str) -> None:
    with pytest.raises(FairtuneError, match=expected):
        load_study(study, [f"plugins=[{name}]"])


def test_a_file_may_not_hide_a_module_that_is_in_use(study: Path) -> None:
    (study.parent / "json.py").write_text(ADDS.format(name="nothing"))
    with pytest.raises(FairtuneError, match="another module is called 'json'; give it another name"):
        load_study(study, ["plugins=[json]"])


def test_a_worker_refuses_a_file_that_changed_or_is_gone(study: Path) -> None:
    planned = make_plan(load_study(study)).plugins
    take_plugins(planned)
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + "# changed\n")
    with pytest.raises(PluginError, match=rf"planned with plug-in {planned[0].label}, which is mine@.* now"):
        take_plugins(planned)
    (study.parent / "mine.py").unlink()
    forget_plugin("mine")
    with pytest.raises(PluginError, match=r"which is not there .*mine\.py"):
        take_plugins(planned)


def fairtune(*words: str | Path, folder: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(path or ""), *sys.path]))}
    command = [sys.executable, "-m", "fairtune", *map(str, words)]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_an_installed_plugin_is_listed_with_its_version(tmp_path: Path) -> None:
    path = install(tmp_path / "site", "[fairtune.methods]\nlookahead = fairtune_example.lookahead\n")
    shown = fairtune("methods", folder=tmp_path, path=path)
    assert "fairtune-example 0.1.0" in " ".join(shown.stdout.split())
    facts = json.loads(fairtune("methods", "lookahead", "--json", folder=tmp_path, path=path).stdout)
    assert facts["methods"]["lookahead"]["plugin"]["version"] == "0.1.0"


@pytest.mark.parametrize("point", ["not_there.lookahead", "fairtune_example.lookahead:Lookahead"])
def test_an_installed_plugin_that_is_broken_is_one_sentence(tmp_path: Path, point: str) -> None:
    path = install(tmp_path / "site", f"[fairtune.methods]\nlookahead = {point}\n")
    refused = fairtune("methods", folder=tmp_path, path=path)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    called = "plug-in fairtune-example 0.1.0: its entry point lookahead of fairtune.methods is"
    assert f"{called} '{point}'; it must name a module that is there" in " ".join(refused.stderr.split())
