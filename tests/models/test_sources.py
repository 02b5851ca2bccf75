"""Finding a model by the name a study gives, and saying exactly what is wrong where there is none."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from fairtune.core.errors import ModelError
from fairtune.models import sources
from fairtune.models.folder_safety import weight_files
from fairtune.models.sources import EMBEDDED_PACKAGE, EMBEDDED_SHA256, find_model
from tests.warm import data_run

COMMIT = "0123456789abcdef0123456789abcdef01234567"
embedded = pytest.mark.skipif(
    importlib.util.find_spec(EMBEDDED_PACKAGE) is None, reason="the package of minilm is not installed"
)


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def test_a_folder_is_found_and_identified_by_its_weights(model: Path, tiny_model: Path) -> None:
    found, original = find_model(str(model)), find_model(str(tiny_model))
    assert found.folder == str(model)
    assert found.fetch() == model
    assert found.identity == original.identity, "the same files elsewhere are the same model"
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "hidden_dropout_prob": 0.5}))
    assert find_model(str(model)).identity != original.identity, "the config is part of a model"


def shard(folder: Path, shards: list[str]) -> None:
    names = {f"tensor{i}": name for i, name in enumerate(shards)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def test_sharded_weights_are_all_counted(model: Path) -> None:
    (model / "model.safetensors").rename(model / "b.safetensors")
    shutil.copy(model / "b.safetensors", model / "a.safetensors")
    shard(model, ["b.safetensors", "a.safetensors", "b.safetensors"])
    assert [f.name for f in weight_files(model)] == ["a.safetensors", "b.safetensors"]
    before = find_model(str(model)).identity
    with (model / "a.safetensors").open("ab") as handle:
        handle.write(b"x")
    assert find_model(str(model)).identity != before


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model", "a/b/c"])
def test_a_missing_folder_is_reported(name: str) -> None:
    with pytest.raises(ModelError, match=f"model '{name}': there is no such folder"):
        find_model(name)


def test_a_file_is_no_folder(model: Path) -> None:
    with pytest.raises(ModelError, match="that is a file; give a folder"):
        find_model(str(model / "model.safetensors"))


@embedded
def test_the_embedded_model_is_checked() -> None:
    found = find_model("minilm")
    assert (found.name, found.identity) == ("minilm", EMBEDDED_SHA256)
    weights = found.fetch() / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == EMBEDDED_SHA256


def fake_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An embedded package with a model of our own."""
    package = folder / "fairtune_fake_minilm"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sources, "EMBEDDED_PACKAGE", package.name)
    return package / "model"


def test_damaged_embedded_weights_are_refused(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_package(tmp_path, monkeypatch)
    shutil.copy(tiny_model / "config.json", folder)
    good = (tiny_model / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(good)
    monkeypatch.setattr(sources, "EMBEDDED_SHA256", hashlib.sha256(good).hexdigest())
    assert find_model("minilm").folder == str(folder)
    (folder / "model.safetensors").write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"minilm': its weights are damaged or replaced"):
        find_model("minilm")


FIND = """
import sys
from fairtune.core.errors import ModelError
from fairtune.models.sources import find_model
for name in sys.argv[1:]:
    try:
        found = find_model(name)
        print(name, found.identity, found.revision, found.fetch())
    except ModelError as error:
        print("ModelError", error)
"""


def find_in_process(cache: Path, *names: str) -> list[str]:
    """The hub's library reads its settings when it is imported, so it needs a process of its own."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}
    command = [sys.executable, "-c", FIND, *names]
    return list(data_run(command, env=environment, text=True, check=True, cwd=cache).stdout.splitlines())


@pytest.fixture
def cache(tiny_model: Path, tmp_path: Path) -> Path:
    """The hub's cache with `org/name`, as the hub's library lays it out."""
    home = tmp_path / "hub" / "models--org--name"
    snapshot = home / "snapshots" / COMMIT
    for folder in (home / "blobs", home / "refs", snapshot):
        folder.mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    for file in tiny_model.iterdir():
        blob = home / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copy(file, blob)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
    return tmp_path / "hub"


def test_a_hub_model_in_the_cache_is_found_without_network(cache: Path) -> None:
    snapshot = cache / "models--org--name" / "snapshots" / COMMIT
    names = ["org/name", "org/name@main", f"org/name@{COMMIT}"]
    assert find_in_process(cache, *names) == [f"{name} {COMMIT} {COMMIT} {snapshot}" for name in names]


def test_a_hub_model_that_is_nowhere_is_reported(cache: Path) -> None:
    lines = find_in_process(cache, "org/none", "org/name@no-such-branch", "minilmm")
    assert [line.split(" ")[0] for line in lines] == ["ModelError"] * 3, "one line each"
    for line, name in zip(lines, ("org/none", "org/name@no-such-branch", "minilmm"), strict=True):
        assert f"model '{name}': no folder of that name, not in the hub's cache" in line
        assert "HF_HUB_OFFLINE is set." in line
        assert "Use `minilm`, a preset, the path of a folder, or a hub id" in line
    assert "Did you mean 'minilm'?" in lines[2]
