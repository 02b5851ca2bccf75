"""All that a page shows of one run: its own curve, its latest events, its warnings, and what it runs on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fairtune.ledger.environment import read_environment
from fairtune.ledger.events import SAMPLE, all_events
from fairtune.ledger.folders import run_folder
from fairtune.monitor.study_builder import StudyBuilder

LATEST = 40
"""Events that are shown."""


def read_run_facts(builder: StudyBuilder, study: str, arm: str, seed: int) -> dict[str, Any] | None:
    """One run, as plain data; None where the study's plan has no such run."""
    found = builder.run_view(study, arm, seed)
    if found is None:
        return None
    folder, progress = run_folder(builder.runs, study, arm, seed), builder.live.progress(study, arm, seed)
    return {
        "run": asdict(found),
        "losses": progress.losses,
        "scores": progress.scores.get(builder.metric(study) or "", ()),
        "events": [event for event in all_events(folder.events) if event.get("event") != SAMPLE][-LATEST:],
        "warnings": list(progress.warnings),
        "environment": read_environment(folder) or {},
    }
