"""Saved states: safetensors and JSON, written aside, fsynced, renamed, with a manifest of sha256 sums. Never pickle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from fairtune.core.files import parse_json, read_sealed, remove_leftovers, write_json, write_sealed
from fairtune.core.folders import files_of, first_change, remove_folder, sums_of, write_folder

MANIFEST, STATE = "manifest.json", "state.json"
Groups = Mapping[str, Mapping[str, Tensor]]


@dataclass(frozen=True)
class Saved:
    """A state read back.

    Args:
        tensors: by group (model, optimizer, random, methods), then by name.
    """

    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


class Damaged(Exception):  # noqa: N818 - skipped with a warning by the reader
    """A saved state whose files are not what its manifest says."""


def write_state(folder: Path, tensors: Groups, state: Mapping[str, Any]) -> None:
    """Write a state so that a reader sees all of it or none."""
    folder.parent.mkdir(exist_ok=True)  # but not the run's folder, if somebody deleted that
    remove_leftovers(folder.parent)  # a run has one writer
    with write_folder(folder, replace=True) as aside:
        for group, members in tensors.items():
            save_file(_unshared(members), aside / f"{group}.safetensors")
        write_json(aside / STATE, state)
        write_sealed(aside / MANIFEST, {"files": sums_of(aside, files_of(aside))})


def read_state(folder: Path) -> Saved:
    """Read a state back, checked against its manifest.

    Raises:
        Damaged: a file is missing, cut off or changed.
    """
    try:
        sums: dict[str, str] = read_sealed(folder / MANIFEST)["files"]
        if change := first_change(folder, sums, sums):
            raise Damaged(f"{folder.name}: {change.name} is not what was written")
        state = parse_json((folder / STATE).read_bytes())
    except OSError as error:
        raise Damaged(f"{folder.name}: {error}") from None
    except (ValueError, KeyError) as error:
        raise Damaged(f"{folder.name}: {MANIFEST} {error}") from None
    files = [folder / name for name in sums if name.endswith(".safetensors")]
    return Saved({file.stem: load_file(file) for file in files}, state)


def newest_valid(folders: Iterable[Path], warn: Callable[[str], None]) -> tuple[Path, Saved] | None:
    """The newest state that can be read; damaged ones are skipped with a warning."""
    for folder in sorted(folders, reverse=True):
        try:
            return folder, read_state(folder)
        except Damaged as problem:
            warn(f"checkpoint skipped, it is damaged: {problem}")
    return None


def keep_only(folders: Iterable[Path], keep: Iterable[Path]) -> None:
    kept = set(keep)
    for folder in folders:
        if folder not in kept:
            remove_folder(folder)


def _unshared(members: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors that share no memory, as safetensors wants them."""
    seen: set[int] = set()
    result = {}
    for name, tensor in members.items():
        tensor = tensor.detach().cpu().contiguous()
        if tensor.untyped_storage().data_ptr() in seen:
            tensor = tensor.clone()
        seen.add(tensor.untyped_storage().data_ptr())
        result[name] = tensor
    return result
