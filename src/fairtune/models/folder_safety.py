"""What a model's folder must not hold: code to run, pickled or quantised weights, files that stand in for those that are hashed.

Needs no torch, so that a folder is refused as soon as a study names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairtune.core.errors import ModelError
from fairtune.core.files import parse_json

CONFIG, TOKENIZER, GENERATION = "config.json", "tokenizer_config.json", "generation_config.json"
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
READ = (CONFIG, TOKENIZER, GENERATION, "processor_config.json", "preprocessor_config.json")
"""The files of settings, each of which may name code."""
REFUSED = {
    "auto_map": "names Python code to run (auto_map), which fairtune never does. Use a checkpoint of an architecture that "
    "transformers has",
    "quantization_config": "says that the weights are quantised (quantization_config), so they can neither be trained nor compared "
    "with their file. Use the checkpoint that they were made from",
    "transformers_weights": "names another file of weights (transformers_weights); rename that file to model.safetensors",
    "configuration_files": "names other configs (configuration_files); keep the one that counts as config.json",
}
"""Fields of settings that change what is loaded, wherever they stand, and what is said about them."""
IMPLEMENTATIONS = ("attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation")


def check_folder(what: str, folder: Path) -> None:
    """Refuse settings that name code, or other files than those that are looked at. A folder may lack any of them."""
    for name in READ:
        for field, value in _fields(read_settings(what, folder / name)) if (folder / name).exists() else ():
            if field in REFUSED and value:
                raise ModelError(f"{what}: its {name} {REFUSED[field]}.")
            if field in IMPLEMENTATIONS and "/" in str(value):
                raise ModelError(f"{what}: its {name} asks for code from the hub ({field}), which fairtune never runs.")


def check_model_folder(what: str, folder: Path) -> list[Path]:
    """The weights that transformers will load from a folder, if nothing else is in it that it would load or run."""
    check_folder(what, folder)
    if (folder / ADAPTER).exists():
        raise ModelError(
            f"{what}: the folder holds an adapter ({ADAPTER}), which would be loaded on top of the model it names. Merge "
            "it into its model (PEFT's merge_and_unload, then save_pretrained) and use that folder, or train an adapter with the "
            "method `peft`."
        )
    if not (folder / CONFIG).is_file():
        raise ModelError(f"{what}: the folder has no {CONFIG}, so it is not a transformers model.")
    if not read_settings(what, folder / CONFIG).get("model_type"):
        raise ModelError(f"{what}: its {CONFIG} names no model_type, so it is not a transformers model.")
    files = weight_files(folder, what)
    if not files:
        raise ModelError(
            f"{what}: the folder has no *.safetensors weights; pickled weights are never loaded, convert them to safetensors."
        )
    return files


def weight_files(folder: Path, what: str | None = None) -> list[Path]:
    """The safetensors files that are loaded: the single file, which transformers takes first, or the shards its index names."""
    named = what or f"model folder {folder}"
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    if not (folder / INDEX).is_file():
        return []
    homes = read_settings(named, folder / INDEX).get("weight_map")
    if not isinstance(homes, dict) or not homes:
        raise ModelError(f"{named}: {INDEX} is not an index of weights.")
    files = [folder / name for name in sorted(set(map(str, homes.values())))]
    for file in files:
        if file.suffix != ".safetensors" or file.parent != folder:
            raise ModelError(
                f"{named}: {INDEX} names '{file}' as weights; only *.safetensors in the folder are loaded."
            )
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ModelError(f"{named}: weights are missing: {', '.join(missing)}.")
    return files


def read_settings(what: str, file: Path) -> dict[str, Any]:
    """The mapping that a file of settings holds."""
    try:
        content = parse_json(file.read_bytes())
    except OSError as error:
        raise ModelError(f"{what}: its {file.name} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise ModelError(f"{what}: its {file.name} is not a JSON mapping: {error}.") from None
    if not isinstance(content, dict):
        raise ModelError(f"{what}: its {file.name} is not a JSON mapping.")
    return content


def _fields(held: Any) -> Iterator[tuple[str, Any]]:
    """Every field of a mapping and of the mappings in it."""
    for field, value in held.items() if isinstance(held, dict) else ():
        yield field, value
    for value in held.values() if isinstance(held, dict) else held if isinstance(held, list) else ():
        yield from _fields(value)
