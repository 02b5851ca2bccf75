"""A run that is watched: its row, how its folder and events looked last, and how far it is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from fairtune.ledger.event_tail import EventTail
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.index import CLOSED, Stamp, look_at_events, look_at_folder, make_row
from fairtune.ledger.index_file import Curve, IndexRow
from fairtune.ledger.run_progress import RunProgress

CURVES = 1
"""The version of what is kept of curves."""


class WatchedRun:
    """A run folder that is looked at again and again.

    Attributes:
        folder_look, events_look: as they were when it was last read.
        row: None until it has been read.
        locked: whether its lock was ever seen to be held: then a lock that nobody holds can be believed.
        progress: of a run that is followed; see `follow`.
    """

    __slots__ = ("arm", "events", "events_look", "folder_look", "locked", "path", "progress", "row", "seed", "tail")

    def __init__(self, arm: str, seed: int, path: str) -> None:
        self.arm, self.seed, self.path, self.events = arm, seed, path, f"{path}/events.jsonl"
        self.folder_look: Stamp = ()
        self.events_look: Stamp = ()
        self.row: IndexRow | None = None
        self.locked = False
        self.tail: EventTail | None = None
        self.progress: RunProgress | None = None

    @property
    def closed(self) -> bool:
        return self.row is not None and self.row.status in CLOSED

    @property
    def run_folder(self) -> RunFolder:
        return RunFolder(Path(self.path))

    def take(self, row: IndexRow, folder_look: Stamp, events_look: Stamp) -> None:
        """Believe a row of the index."""
        self.row, self.folder_look, self.events_look = row, folder_look, events_look

    def read(self, study: str) -> bool:
        """Read the run's folder; says whether it looks otherwise than before."""
        looks = (
            look_at_folder(self.path),
            look_at_events(self.events),
        )  # first, so that a change meanwhile shows next time
        moved = looks != (self.folder_look, self.events_look)
        self.row = make_row(study, self.run_folder)
        self.folder_look, self.events_look = looks
        return moved

    def follow(self, steps: int | None) -> RunProgress:
        """Take in what was added to its events."""
        if self.tail is None or self.progress is None:
            self.tail, self.progress = EventTail(self.events), RunProgress(steps)
        while True:
            events = self.tail.read()
            if self.tail.restarted:
                self.progress = RunProgress(steps)
            self.progress.add(events)
            if not self.tail.behind:
                return self.progress

    def leave(self) -> None:
        """Follow it no more; its events are read from the start if somebody asks again."""
        self.tail = self.progress = None


def make_curve(progress: RunProgress, events_look: Stamp) -> Curve:
    """What is kept of a run that has ended, with what says that it is that of these events."""
    text = json.dumps(progress.as_json(), separators=(",", ":"))
    return curve_seal(text, events_look), text


def read_curve(curve: Curve | None, events_look: Stamp) -> RunProgress | None:
    """What was kept of a run; None where it is of other events, or damaged."""
    if curve is None or curve[0] != curve_seal(curve[1], events_look):
        return None
    try:
        return RunProgress.from_json(json.loads(curve[1]))
    except (KeyError, TypeError, ValueError, AttributeError):  # of another version, which forgot to say so
        return None


def curve_seal(text: str, events_look: Stamp) -> str:
    return hashlib.sha256(f"{CURVES}|{events_look}|{text}".encode()).hexdigest()[:32]
