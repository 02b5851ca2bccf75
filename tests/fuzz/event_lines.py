"""The event lines of a run, damaged: those that can be read are as they were written, and the others are left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairtune.ledger.events import EventLog, all_events, counted_events
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


def _check_events(file: Path, written: list[dict[str, Any]]) -> None:
    assert all(event in written for event in counted_events(file)), "no line says what was never written"


@target("event lines", 60)
def event_lines(seed: int, folder: Path) -> Outcome | None:
    file = folder / "events.jsonl"
    _written(file)
    before, written = file.read_bytes(), all_events(file)
    if seed % 2:
        lines = before.splitlines()
        lines[seed % len(lines)] = damaged_json(json.loads(lines[seed % len(lines)]), seed)
        after = b"\n".join(lines) + b"\n"
    else:
        after = damaged(before, seed)
    file.write_bytes(after)
    return judge(file.name, before, after, lambda: _check_events(file, written))
