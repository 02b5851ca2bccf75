"""The tensors that a model is compared with: read from the checkpoint's files, or drawn once more, independently of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from safetensors import safe_open
from torch import Tensor

from fairtune.models.folder_safety import weight_files
from fairtune.models.loader import LoadedModel
from fairtune.models.transformers_files import explain_failure


def reference_of(loaded: LoadedModel) -> CheckpointTensors | RebuiltTensors:
    """What a model is compared with: its file, or the same draw once more."""
    if loaded.rebuilt is not None:
        return RebuiltTensors(loaded.rebuilt)
    return CheckpointTensors(cast(Path, loaded.folder))


class RebuiltTensors:
    """Tensors of a preset, drawn independently of those that are compared with them."""

    def __init__(self, rebuild: Callable[[], Mapping[str, Tensor]]) -> None:
        self._rebuild = rebuild

    def __enter__(self) -> RebuiltTensors:
        self._tensors = self._rebuild()
        return self

    def __exit__(self, *_: object) -> None:
        self._tensors = {}

    def get(self, name: str, prefix: str) -> Tensor | None:  # noqa: ARG002 - a checkpoint's names need it
        return self._tensors.get(name)


class CheckpointTensors:
    """Tensors of a checkpoint's files by name, read one at a time."""

    def __init__(self, folder: Path) -> None:
        self._files = weight_files(folder)

    def __enter__(self) -> CheckpointTensors:
        self._stack = ExitStack()
        self._homes: dict[str, Any] = {}
        for file in self._files:
            with explain_failure(f"{file} is damaged"):
                handle = self._stack.enter_context(safe_open(str(file), framework="pt"))
            self._homes.update(dict.fromkeys(handle.keys(), handle))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _names(self, name: str, prefix: str) -> Iterator[str]:
        """A base model's file lacks the prefix that a model with a head adds; old files have other names for norms and heads."""
        old_head = name.replace("lm_head.", "embed_out.")
        for candidate in (name, name.removeprefix(f"{prefix}."), f"{prefix}.{name}", old_head):
            yield candidate
            if "LayerNorm." in candidate:
                yield candidate.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                    "LayerNorm.bias", "LayerNorm.beta"
                )

    def has(self, name: str, prefix: str) -> bool:
        return any(candidate in self._homes for candidate in self._names(name, prefix))

    def get(self, name: str, prefix: str) -> Tensor | None:
        for candidate in self._names(name, prefix):
            if candidate in self._homes:
                return self._homes[candidate].get_tensor(candidate)  # type: ignore[no-any-return]
        return None
