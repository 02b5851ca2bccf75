"""What a tracker is, which there are, and what they keep beside what they send."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from fairtune.core.errors import FairtuneError
from fairtune.core.files import read_sealed, write_sealed
from fairtune.monitor.trackers.rows import TrackedPoint, TrackedRow, TrackedStudy
from fairtune.settings.track import TRACKERS, Track

CLASSES = {
    "tensorboard": "TensorboardFiles",
    "mlflow": "MlflowRuns",
    "wandb": "WandbRuns",
    "trackio": "TrackioRuns",
}


class TrackerError(FairtuneError):
    """A tracker cannot be used."""


class Tracker(Protocol):
    """Where rows are sent. Any exception that it raises is told, and hurts nothing but itself.

    Attributes:
        name: as `--to` has it.
        place: where it sends to, and how to look at it, in words.
        live: whether rows of runs under way can be sent, and sent again.
    """

    name: str
    place: str
    live: bool

    def begin(self, study: TrackedStudy) -> None:
        """Make ready for a study; called before anything is sent."""

    def marks(self) -> Mapping[str, str]:
        """The mark of each row that the destination is known to hold whole, by its name."""

    def sent(self, row: TrackedRow) -> Mapping[str, int]:
        """The last step of each curve that the destination holds of a row whose mark is not known; `*` speaks for all curves."""

    def send(self, row: TrackedRow, points: Sequence[TrackedPoint], mark: str) -> None:
        """Send what is new of a row; once all of it is there, keep the mark."""

    def send_study(self, study: TrackedStudy) -> None:
        """Send what there is to say of the whole study."""

    def flush(self) -> None:
        """All of a sync was sent; what was sent is to last."""

    def close(self) -> None:
        """Nothing more will be sent by this process."""


def missing_packages(names: Sequence[str]) -> dict[str, str]:
    """The trackers whose package is not installed, each with how to install it."""
    return {
        name: f"{name} is not installed: pip install 'fairtune[{name}]'"
        for name in names
        if importlib.util.find_spec(name) is None
    }


def make_tracker(name: str, track: Track, study: str) -> Tracker:
    """A tracker by its name.

    Raises:
        TrackerError: its package is not installed, or cannot be used as asked.
    """
    assert name in TRACKERS, f"settings know the trackers, and {name} is none"
    for problem in missing_packages([name]).values():
        raise TrackerError(problem)
    try:
        module = importlib.import_module(f"fairtune.monitor.trackers.{name}")
    except ImportError as error:  # a version that lacks what is needed
        raise TrackerError(f"{name} cannot be imported ({error}); pip install -U 'fairtune[{name}]'") from None
    found: Tracker = getattr(module, CLASSES[name])(getattr(track, name), study)
    return found


def without_password(text: str) -> str:
    """A text in which addresses have no passwords."""
    return re.sub(r"(://[^/@:\s]*):[^/@\s]+@", r"\1:...@", text)


class MarkFile:
    """Marks of rows in a small sealed file beside what was sent; one that is missing or damaged costs time alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            self.content = read_sealed(path)
        rows = self.content.get("rows")
        self.rows: dict[str, dict[str, Any]] = rows if isinstance(rows, dict) else {}
        self._changed = False

    def keep(self, name: str, mark: str, **facts: Any) -> None:
        self.rows[name] = {"mark": mark, **facts}
        self._changed = True

    def drop(self, name: str) -> None:
        self._changed = self.rows.pop(name, None) is not None or self._changed

    def marks(self) -> dict[str, str]:
        return {name: str(row.get("mark")) for name, row in self.rows.items() if isinstance(row, dict)}

    def save(self, **facts: Any) -> None:
        if self._changed:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(self.path, {**facts, "rows": self.rows})
            self._changed = False
