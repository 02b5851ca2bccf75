"""The event lines of a run, damaged: those that can be read are as they were written, and the others are left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairtune.ledger.events import EventLog, counted_events
from tests.fuzz.mutating import damaged, damaged_json
from tests.fuzz.outcomes import Outcome, judge
from tests.fuzz.registering import target


def _written(file: Path) -> None:
    log = EventLog(file)
    for unit in range(6):
        log.write("step", unit, loss=unit / 3, lr=1e-4, words=["a", "b"])
    log.write("evaluation", 6, metrics={"accuracy": 0.5, "loss": None})
    log.write("resumed", 4)
    log.write("step", 4, loss=0.1)
    log.write("warning", 5, text="something “odd” 😀")
    log.close()


def _told(file: Path) -> list[dict[str, Any]]:
    found = counted_events(file)
    assert all(isinstance(event["event"], str) and isinstance(event["unit"], int) for event in found)
    return found


@target("event lines", 60)
def event_lines(seed: int, folder: Path) -> Outcome | None:
    file = folder / "events.jsonl"
    _written(file)
    before = file.read_bytes()
    if seed % 2:
        lines = before.splitlines()
        lines[seed % len(lines)] = damaged_json(json.loads(lines[seed % len(lines)]), seed)
        after = b"\n".join(lines) + b"\n"
    else:
        after = damaged(before, seed)
    file.write_bytes(after)
    return judge(file.name, before, after, lambda: _told(file))
