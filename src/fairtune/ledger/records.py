"""What methods record while they train: figures in the run's events, arrays in files of their own.

A record is found by its event line, so one whose step was lost with a killed process is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_atomically
from fairtune.ledger.events import counted_events
from fairtune.ledger.folders import RunFolder

EVENT = "record"
ABOUT = ("event", "unit", "time", "name", "step", "epoch")
"""What an event line says of a record besides its figures."""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class MethodRecord:
    """What a method recorded at one step, after so many whole passes over the training examples."""

    step: int
    epoch: int
    figures: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def write_arrays(folder: RunFolder, name: str, step: int, arrays: Arrays) -> None:
    """Keep a record's arrays; a step that is done again writes the same once more."""
    folder.records.mkdir(exist_ok=True)
    whole = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
    write_atomically(_file(folder, name, step), save(whole))


def read_records(folder: RunFolder, name: str) -> list[MethodRecord]:
    """The records of a name that count, in their order."""
    found = []
    for event in counted_events(folder.events):
        if event["event"] == EVENT and event.get("name") == name:
            step, figures = int(event["step"]), {key: value for key, value in event.items() if key not in ABOUT}
            path = _file(folder, name, step)
            try:
                found.append(MethodRecord(step, int(event["epoch"]), figures, load(path.read_bytes())))
            except (OSError, SafetensorError) as error:
                raise LedgerError(
                    f"{path}: what {name} recorded at step {step} cannot be read ({str(error).splitlines()[0]}); move the run's "
                    "folder away and run the study again."
                ) from None
    return found


def _file(folder: RunFolder, name: str, step: int) -> Path:
    return folder.records / f"{name}-{step:09d}.safetensors"
