"""The saved states of a run: what decides the bits that follow, how it is written and how it is resumed.

A state is a folder of safetensors and JSON, never pickle, written aside and renamed, with a manifest of sha256 sums.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from fairtune.core.errors import RunFailure
from fairtune.core.files import (
    files_of,
    parse_json,
    read_json,
    read_sealed,
    remove,
    remove_leftovers,
    sha256_of,
    sums_of,
    write_folder,
    write_json,
    write_sealed,
)
from fairtune.core.locks import require_held
from fairtune.methods.base import Method
from fairtune.settings.values import INTERVAL_UNITS
from fairtune.training.objectives import Evaluation
from fairtune.training.progress import TRAIN, Progress

if TYPE_CHECKING:
    from fairtune.training.loop import TrainingRun

MANIFEST, STATE = "manifest.json", "state.json"
KEPT = 2
"""States kept: the newest, and one more in case the newest is damaged."""


@dataclass(frozen=True)
class SavedState:
    """A state read back.

    Args:
        tensors: by group (model, optimizer, random, methods), then by name.
    """

    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


class DamagedState(Exception):  # noqa: N818 - skipped with a warning by the reader
    """A saved state whose files are not what its manifest says."""


@dataclass
class RunStates:
    """The saved states of one run: `step-*` are whole states, `best-*` the weights of the best evaluations.

    Args:
        key: of the run's settings; a state of other settings is never resumed.
        warn: takes a text when a damaged state is skipped.
        every: how often a state is saved, in steps or as an interval such as `5min`; None saves only on request.
    """

    folder: Path
    key: str
    warn: Callable[[str], None]
    every: int | str | None = None
    _saved_at: float = field(default_factory=time.monotonic, init=False)

    def are_due(self, now: Progress) -> bool:
        """Whether it is time to save."""
        if self.every is None or isinstance(self.every, int):
            return self.every is not None and now.phase == TRAIN and now.step % self.every == 0
        unit = self.every.lstrip("0123456789.")
        return time.monotonic() - self._saved_at >= float(self.every.removesuffix(unit)) * INTERVAL_UNITS[unit]

    def save(self, run: TrainingRun) -> None:
        """Write a whole state, then drop older ones and best weights that no kept state refers to."""
        random_tensors, random_values = run.random
        method_tensors, method_values = _states_of(run.methods)
        optimizer: dict[int, dict[str, Tensor]] = run.optimizer.state_dict()["state"]
        write_state(
            self.folder / f"step-{run.progress.unit:09d}",
            {
                "model": run.accelerator.unwrap_model(run.model).state_dict(),
                "optimizer": {f"{i}.{name}": value for i, state in optimizer.items() for name, value in state.items()},
                "random": random_tensors,
                "methods": method_tensors,
            },
            {
                "key": self.key,
                "progress": asdict(run.progress),
                "seconds": run.clock.seconds,
                "random": random_values,
                "methods": method_values,
                "scaler": run.accelerator.scaler.state_dict() if run.accelerator.scaler else None,
            },
        )
        self._saved_at = time.monotonic()
        kept = sorted(self.folder.glob("step-*"))[-KEPT:]
        keep_only(self.folder.glob("step-*"), kept)
        keep_only(self.folder.glob("best-*"), [self._best(run.progress.best_step), *self._referred(kept)])

    def resume(self, run: TrainingRun) -> bool:
        """Bring a run to the newest state that can be read; False if there is none."""
        found = newest_valid(self.folder.glob("step-*"), self.warn)
        if found is None:
            return False
        saved = self._own(*found)
        _load(run, saved)
        run.progress = Progress(**saved.state["progress"])
        run.clock.seconds = dict(saved.state["seconds"])
        run.make_optimizer()
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in saved.tensors["optimizer"].items():
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = value
        run.optimizer.load_state_dict({"state": state, "param_groups": run.optimizer.state_dict()["param_groups"]})
        if run.accelerator.scaler is not None and saved.state["scaler"]:
            run.accelerator.scaler.load_state_dict(saved.state["scaler"])
        run.random = saved.tensors["random"], saved.state["random"]
        return True

    def save_best(self, run: TrainingRun, found: Evaluation) -> None:
        """Keep the weights that were just evaluated, with their validation scores."""
        tensors, values = _states_of(run.methods)
        with ExitStack() as stack:
            for method in run.methods:
                stack.enter_context(method.evaluating(run.model))
            write_state(
                self._best(run.progress.best_step),
                {
                    "model": run.accelerator.unwrap_model(run.model).state_dict(),
                    "methods": tensors,
                    "scores": {name: torch.from_numpy(array) for name, array in found.arrays.items()},
                },
                {"key": self.key, "methods": values, "metrics": found.metrics},
            )

    def restore_best(self, run: TrainingRun) -> Evaluation:
        """Load the best weights; returns their validation scores."""
        best = self._best(run.progress.best_step)
        try:
            saved = self._own(best, read_state(best))
        except DamagedState as problem:
            raise RunFailure(
                f"the best weights cannot be read back: {problem}; remove the run's folder to start it again"
            ) from None
        _load(run, saved)
        arrays = {name: part.numpy() for name, part in saved.tensors["scores"].items()}
        return Evaluation(arrays, saved.state["metrics"])

    def _own(self, folder: Path, saved: SavedState) -> SavedState:
        """The state, if it is of this run."""
        if saved.state.get("key") != self.key:
            raise RunFailure(
                f"its checkpoint {folder.name} was saved by a run of other settings; move the run's folder away and run the study "
                "again"
            )
        return saved

    def _best(self, step: int | None) -> Path:
        return self.folder / f"best-{step or 0:09d}"

    def _referred(self, states: Sequence[Path]) -> Iterator[Path]:
        for folder in states:
            step = ((read_json(folder / STATE) or {}).get("progress") or {}).get("best_step")
            if step is not None:
                yield self._best(step)


def _states_of(methods: Sequence[Method]) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The methods' states: tensors under `<place in the arm>.<name>`, and what JSON can hold by place."""
    tensors: dict[str, Tensor] = {}
    values = []
    for number, method in enumerate(methods):
        state = method.state_dict()
        tensors |= {f"{number}.{name}": value for name, value in state.items() if isinstance(value, Tensor)}
        values.append({name: value for name, value in state.items() if not isinstance(value, Tensor)})
    return tensors, values


def _load(run: TrainingRun, saved: SavedState) -> None:
    """Take over methods and weights; methods first, as one may have changed the model's shape."""
    for number, method in enumerate(run.methods):
        prefix = f"{number}."
        tensors = {k.removeprefix(prefix): v for k, v in saved.tensors["methods"].items() if k.startswith(prefix)}
        method.load_state_dict({**saved.state["methods"][number], **tensors}, run.model)
    run.model.load_state_dict(saved.tensors["model"])


def write_state(folder: Path, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    """Write a state so that a reader sees all of it or none.

    Raises:
        LeaseLost: another process has taken the run over.
    """
    require_held(folder.parent.parent)
    folder.parent.mkdir(exist_ok=True)  # but not the run's folder, if somebody deleted that
    remove_leftovers(folder.parent)  # a run has one writer
    with write_folder(folder, replace=True) as aside:
        for group, members in tensors.items():
            save_file(_unshared(members), aside / f"{group}.safetensors")
        write_json(aside / STATE, state)
        write_sealed(aside / MANIFEST, {"files": sums_of(aside, files_of(aside))})


def read_state(folder: Path) -> SavedState:
    """Read a state back, checked against its manifest.

    Raises:
        DamagedState: a file is missing, cut off or changed.
    """
    try:
        sums: dict[str, str] = read_sealed(folder / MANIFEST)["files"]
        if changed := [name for name in sums if sha256_of(folder / name) != sums[name]]:
            raise DamagedState(f"{folder.name}: {changed[0]} is not what was written")
        state = parse_json((folder / STATE).read_bytes())
    except OSError as error:
        raise DamagedState(f"{folder.name}: {error}") from None
    except (ValueError, KeyError) as error:
        raise DamagedState(f"{folder.name}: {MANIFEST} {error}") from None
    files = [folder / name for name in sums if name.endswith(".safetensors")]
    return SavedState({file.stem: load_file(file) for file in files}, state)


def newest_valid(folders: Iterable[Path], warn: Callable[[str], None]) -> tuple[Path, SavedState] | None:
    """The newest state that can be read; damaged ones are skipped with a warning."""
    for folder in sorted(folders, reverse=True):
        try:
            return folder, read_state(folder)
        except DamagedState as problem:
            warn(f"checkpoint skipped, it is damaged: {problem}")
    return None


def keep_only(folders: Iterable[Path], keep: Iterable[Path]) -> None:
    kept = set(keep)
    for folder in folders:
        if folder not in kept:
            remove(folder)


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
