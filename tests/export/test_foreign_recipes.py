"""A recipe may come from a stranger: whatever it says, it is refused in a sentence or restores the very model it names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import LedgerError
from fairtune.export import restoration
from fairtune.export.delta import export_delta
from fairtune.export.restoration import restore_delta
from tests.execution.made_runs import change_recipe, make_run


@pytest.fixture(scope="module")
def made(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign")
    run = make_run(folder / "runs", tiny_model, tiny_task, [{"orthogonal_qk": {"init": "normal"}}])
    return Path(export_delta(run.path, folder / "delta").out)


@pytest.fixture
def delta(made: Path, tmp_path: Path) -> Path:
    """A copy whose recipe may be changed."""
    copy = tmp_path / "delta"
    copy.mkdir()
    for file in made.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


@pytest.fixture
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that is refused is refused before a model is looked for."""

    def looked_for(*_: object) -> None:
        raise AssertionError("a checkpoint was looked for")

    monkeypatch.setattr(restoration, "find_model", looked_for)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"train": None}, r"settings: methods must be a list .* and train a mapping"),
        ({"train": {"batch_size": 10**12}}, r"settings\.train: batch_size: .*less than or equal to 1000000"),
        ({"train": {"attention": 3}}, r"settings\.train: attention"),
        ({"train": {"lr": float("nan")}}, r"settings\.train: lr: .*finite"),
        ({"seed": 2**63}, r"settings\.seed: .*less than or equal to 4294967295"),
        ({"seed": "3"}, r"settings\.seed: .*valid integer"),
        ({"seed": None}, r"settings\.seed"),
        ({"methods": None}, r"methods must be a list"),
        ({"methods": ["ema"] * 40}, r"methods must be a list of at most 32"),
        ({"methods": [{"fgn": {}}]}, r"cannot build the run's methods \[\{'fgn': \{\}\}\]: unknown method"),
        ({"methods": [3]}, r"cannot build the run's methods \[3\]"),
        ({"methods": [{"orthogonal_qk": {"layers": "0-9999999999"}}]}, r"orthogonal_qk\.layers"),
        ({"methods": [{"bpsom": {"grid": 10**9}}]}, r"bpsom\.grid"),
        ({"methods": [{"bpsom": {"grid": 1000, "hidden": 10_000}}]}, r"a map of 10,000,000,000 weights"),
        ({"methods": [{"weighted_ce": {"weights": [1.0] * 5000}}]}, r"found 5,000 weights"),
        ({"methods": ["focal", "weighted_ce"]}, r"both change the loss"),
        ({"task": {"name": "\x1b[2J"}}, r"settings: task\.name: .*control character '\\x1b'"),
        ({"task": [[[[[[]]]]]] * 20_000}, r"more than 20,000 values"),
    ],
)
@pytest.mark.usefixtures("nothing_is_built")
def test_settings_that_no_study_could_have_are_refused_before_anything_is_built(
    delta: Path, tiny_model: Path, tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    settings = json.loads((delta / "recipe.json").read_text())["settings"]
    change_recipe(delta, settings={**settings, **change})
    with pytest.raises(LedgerError, match=expected) as caught:
        restore_delta(delta, tmp_path / "whole", str(tiny_model))
    assert str(delta / "recipe.json") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "whole").exists()


@pytest.mark.parametrize(
    "rank", [{"r": 10**9}, {"rank_pattern": {"query": 10**9}}, {"layer_replication": [[0, 10**9]]}]
)
@pytest.mark.usefixtures("nothing_is_built")
def test_adapters_of_any_size_are_refused(delta: Path, tmp_path: Path, rank: dict[str, Any]) -> None:
    pytest.importorskip("peft")
    settings = json.loads((delta / "recipe.json").read_text())["settings"]
    change_recipe(delta, settings={**settings, "methods": [{"peft": {"type": "lora", **rank}}]})
    with pytest.raises(LedgerError, match=rf"peft\.{next(iter(rank))}: found .*1000000000.*; allowed: whole numbers"):
        restore_delta(delta, tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "/etc"}, "allowed: a hub id, or the plain name of a folder"),
        ({"name": "../models/tiny-bert"}, "plain name of a folder"),
        ({"name": "a/../../b"}, "plain name of a folder"),
        ({"name": "~/models"}, "plain name of a folder"),
        ({"name": ""}, "at least 1 character"),
        ({"name": "a" * 300}, "at most 255"),
        ({"name": "a\x1b[2J"}, "control character"),
        ({"identity": "x"}, "pattern"),
        ({"sha256": 3}, "valid string"),
    ],
)
@pytest.mark.usefixtures("nothing_is_built")
def test_a_checkpoints_name_leads_out_of_no_folder(
    delta: Path, tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    checkpoint = json.loads((delta / "recipe.json").read_text())["checkpoint"]
    change_recipe(delta, checkpoint={**checkpoint, **change})
    with pytest.raises(LedgerError, match=rf"recipe\.json is damaged: checkpoint\.{next(iter(change))}: .*{expected}"):
        restore_delta(delta, tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"labels": []}, "labels"),
        ({"labels": ["x"] * 1001}, "labels"),
        ({"signature": "a\nb\x07"}, "signature: .*control character"),
        ({"model": {"weight": "x"}}, "model"),
        ({"model_bytes": -1}, "model_bytes"),
        ({"format": True}, "format"),
        ({"protocol": 10**40}, "under protocol 1000"),
        ({"fairtune": "\x1b[2J", "format": 9}, r"a newer fairtune \(unknown; "),
        ({"stored": ["another"]}, r"delta\.safetensors is damaged"),
    ],
)
def test_other_parts_are_checked_too(delta: Path, tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    change_recipe(delta, **change)
    with pytest.raises(LedgerError, match=expected):
        restore_delta(delta, tmp_path / "whole")


def test_a_recipe_that_is_no_file_is_not_waited_for(delta: Path, tmp_path: Path) -> None:
    (delta / "recipe.json").unlink()
    os.mkfifo(delta / "recipe.json")
    with pytest.raises(LedgerError, match="a device or a pipe, not a regular file"):
        restore_delta(delta, tmp_path / "whole")
    (delta / "recipe.json").unlink()
    (delta / "recipe.json").symlink_to("/dev/zero")
    with pytest.raises(LedgerError, match="a device or a pipe, not a regular file"):
        restore_delta(delta, tmp_path / "whole")
    (delta / "recipe.json").unlink()
    (delta / "recipe.json").write_text("[" * 100_000)
    with pytest.raises(LedgerError, match="is damaged: it is not JSON"):
        restore_delta(delta, tmp_path / "whole")
