"""Foreign code and foreign files in a model's folder are refused here: nothing is run, unpickled, fetched, or read in place of
what is identified.

Needs no torch, so that a folder is refused as soon as a study names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairtune.core.errors import ModelError
from fairtune.core.files import parse_json

CONFIG, TOKENIZER, GENERATION = "config.json", "tokenizer_config.json", "generation_config.json"
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
READ = (CONFIG, TOKENIZER, GENERATION, "processor_config.json", "preprocessor_config.json", "special_tokens_map.json",
        "added_tokens.json")  # fmt: skip
"""The files of settings, each of which may name code."""
RANK = re.compile(r"shard-\d+-model-\d+-of-\d+\.safetensors")
"""Parts of a distributed checkpoint, which transformers reads before any other weights."""
MOST_LAYERS, MOST_LABELS = 1024, 1_000_000
COUNTS = re.compile(r"(layers?|blocks?|experts?|groups?|group_num|stages?|attention_types|block_sizes|block_repeats)$")
"""Fields that say how often something is built: a wrong one would build until the memory is full."""
OTHER_FILES = {
    "transformers_weights": "names another file of weights; rename that file to model.safetensors and remove the field",
    "configuration_files": "names other configs, which would be read in its place; keep the one that counts as config.json",
    "fusion_config": "asks transformers to rebuild the architecture's modules; remove the field",
}
IMPLEMENTATIONS = ("attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation")


class MissingWeights(ModelError):  # noqa: N818 - users meet it as a ModelError
    """Weights that an index names are not there, as of a checkpoint that is not wholly fetched."""


def check_folder(what: str, folder: Path) -> None:
    """Refuse settings that name code, or files other than those that are looked at. A folder may lack any of them.

    Args:
        what: the model or tokenizer, for the message.

    Raises:
        ModelError: it names the file.
    """
    for name in READ:
        file = folder / name
        if not file.exists() and not file.is_symlink():
            continue
        content = read_settings(what, file)
        if name == CONFIG:
            _check_config(what, content)
        if any(value for value in _values(content, "auto_map")):
            raise ModelError(
                f"{what}: its {name} names Python code to run (auto_map), which fairtune never does. Use a checkpoint whose "
                "architecture transformers has; if it has this one, use a copy of the folder without that field."
            )
        if name == TOKENIZER:
            _check_versions(what, content)
            _check_tokens(what, content)


def check_model_folder(what: str, folder: Path) -> None:
    """Also refuse what would be loaded in addition to the model's weights, or in their place."""
    check_folder(what, folder)
    if (folder / ADAPTER).exists():
        base = (_mapping(folder / ADAPTER) or {}).get("base_model_name_or_path")
        of = f" of {base}" if isinstance(base, str) and base else ""
        raise ModelError(
            f"{what}: the folder holds an adapter{of} ({ADAPTER}), which would be loaded on top of whatever model is named there. "
            "Merge it into its model (PEFT's merge_and_unload, then save_pretrained) and use that folder, or train an adapter "
            "with the method `peft`."
        )
    ranks = sorted(file.name for file in folder.iterdir() if RANK.fullmatch(file.name))
    if ranks:
        raise ModelError(
            f"{what}: {ranks[0]} is part of a distributed checkpoint, which would be read in place of {SINGLE}; save the model "
            "with save_pretrained, or remove those files."
        )


def weight_files(folder: Path, what: str | None = None) -> list[Path]:
    """The safetensors files that are loaded: the single file, which transformers takes first, or the shards its index names.

    Raises:
        ModelError: a file is missing, is not safetensors, or lies outside the folder.
    """
    named = what or f"model folder {folder}"
    single, index = folder / SINGLE, folder / INDEX
    if single.is_file():
        return [_inside(named, folder, single)]
    if not index.is_file():
        return []
    names = _shards(named, _inside(named, folder, index))
    for name in names:
        if not name.endswith(".safetensors") or Path(name).name != name or "\0" in name:
            raise ModelError(
                f"{named}: {INDEX} names {name!r} as a file of weights; only *.safetensors in the folder itself are loaded, and "
                "pickled weights never are."
            )
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise MissingWeights(f"{named}: weights are missing: {', '.join(missing)}.")
    return [_inside(named, folder, folder / name) for name in names]


def read_settings(what: str, file: Path) -> dict[str, Any]:
    """The mapping that a file of settings holds.

    Raises:
        ModelError: it holds none.
    """
    if file.exists() and not file.is_file():
        raise ModelError(f"{what}: its {file.name} is not a plain file.")
    try:
        content = parse_json(file.read_bytes())
    except OSError as error:
        raise ModelError(f"{what}: its {file.name} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise ModelError(f"{what}: its {file.name} is not a JSON mapping: {error}.") from None
    if not isinstance(content, dict):
        raise ModelError(f"{what}: its {file.name} is not a JSON mapping.")
    return content


def _mapping(file: Path) -> dict[str, Any] | None:
    try:
        return read_settings("", file)
    except ModelError:
        return None


def _check_config(what: str, config: dict[str, Any]) -> None:
    for field, reason in OTHER_FILES.items():
        if config.get(field) is not None:
            raise ModelError(f"{what}: its {CONFIG} has a field {field}, which {reason}.")
    for field in ("quantization_config", "compression_config"):
        for found in _values(config, field):
            if found is None:
                continue
            method = found.get("quant_method") if isinstance(found, dict) else None
            how = f" by {method}" if isinstance(method, str) else ""
            raise ModelError(
                f"{what}: its {CONFIG} says that the weights are quantised{how} ({field}); such weights can neither be trained "
                "nor compared with their file. Use the checkpoint that they were made from."
            )
    for field in IMPLEMENTATIONS:
        if any("/" in str(found) for found in _values(config, field)):
            raise ModelError(f"{what}: its {CONFIG} asks for code from the hub ({field}), which fairtune never runs.")
    _check_counts(what, config)


def _check_counts(what: str, config: dict[str, Any]) -> None:
    for field, value in _fields(config):
        if field == "num_labels":
            most = MOST_LABELS
        elif COUNTS.search(field):
            most = MOST_LAYERS
        else:
            continue
        largest = max(_numbers(value), default=0)
        if largest > most:
            raise ModelError(f"{what}: its {CONFIG} says {field}: {largest}; more than {most:,} cannot be.")


def _check_versions(what: str, config: dict[str, Any]) -> None:
    """transformers picks one of these files by its own version."""
    names = config.get("fast_tokenizer_files") or []
    plain = isinstance(names, list) and all(isinstance(name, str) and Path(name).name == name for name in names)
    if not plain:
        raise ModelError(
            f"{what}: its {TOKENIZER} names files outside the folder (fast_tokenizer_files); remove the field."
        )


def _check_tokens(what: str, config: dict[str, Any]) -> None:
    """Numbers of added tokens, up to which transformers may fill a vocabulary."""
    added = config.get("added_tokens_decoder") or {}
    if not isinstance(added, dict) or not all(str(number).isdecimal() and len(str(number)) <= 7 for number in added):
        raise ModelError(f"{what}: its {TOKENIZER} has token numbers outside 0 to 9,999,999 (added_tokens_decoder).")


def _shards(what: str, index: Path) -> list[str]:
    content = _mapping(index) or {}
    homes, about = content.get("weight_map"), content.get("metadata", {})
    if (
        not isinstance(homes, dict)
        or not homes
        or not all(isinstance(name, str) and name for name in homes.values())
        or not isinstance(about, dict)
    ):
        raise ModelError(f"{what}: {index.name} is not an index of weights.")
    return sorted(set(homes.values()))


def _inside(what: str, folder: Path, file: Path) -> Path:
    """The file, which must lie in the folder; in the hub's cache, in what is kept of the same repository."""
    place = folder.resolve()
    home = (
        place.parent.parent if place.parent.name == "snapshots" and (place.parent.parent / "blobs").is_dir() else place
    )
    if not file.resolve().is_relative_to(home):
        raise ModelError(
            f"{what}: {file.name} is a link to {file.resolve()}, outside the folder; copy the file into the folder."
        )
    return file


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field of a mapping and of the mappings in it. Not by recursion: the depth is the file's to choose."""
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if isinstance(held, dict):
            yield from held.items()
            waiting += held.values()
        elif isinstance(held, list):
            waiting += held


def _values(value: Any, field: str) -> Iterator[Any]:
    return (found for name, found in _fields(value) if name == field)


def _numbers(value: Any) -> Iterator[float]:
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if isinstance(held, list):
            waiting += held
        elif isinstance(held, int | float) and not isinstance(held, bool):
            yield held
