"""Pictures of self-organising maps as they form: the latest of a run, and how it came about. Drawn when a page asks, and kept."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.ledger.folders import run_folder
from fairtune.ledger.seals import RUNNING, WAITING
from fairtune.monitor.study_builder import StudyBuilder

RECORD = "bpsom"
LATEST, HISTORY = "map", "history"
LISTED, KEPT = 12, 48
"""Runs whose maps a page lists, and pictures that are remembered."""


class MapPictures:
    """The maps of a runs folder."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._kept: OrderedDict[tuple[str, str, int, str, int], bytes] = OrderedDict()

    def listed(self, builder: StudyBuilder, study: str) -> list[dict[str, Any]]:
        """The maps of runs under way, then of the others: one picture of each, and one of how it formed."""
        with_maps = builder.arms_with(study, RECORD)
        rows = [row for row in builder.live.rows(study) if row.status != WAITING and row.arm in with_maps]
        rows.sort(key=lambda row: row.status != RUNNING)
        found: list[dict[str, Any]] = []
        for row in rows:
            steps = self._steps(study, row.arm, row.seed)
            if not steps:
                continue
            for layer in (LATEST, HISTORY) if len(steps) > 1 else (LATEST,):
                when = f"step {steps[-1]:,}" if layer == LATEST else f"{len(steps)} labelling passes"
                found.append(
                    {"arm": row.arm, "seed": row.seed, "layer": layer, "when": when, "version": str(steps[-1])}
                )
            if len(found) >= 2 * LISTED:
                break
        return found

    def draw(self, builder: StudyBuilder, study: str, arm: str, seed: int, layer: str) -> bytes | None:
        """A picture (PNG); None where there is no such map."""
        known = any((row.arm, row.seed) == (arm, seed) for row in builder.live.rows(study))
        steps = self._steps(study, arm, seed) if known else []
        if not steps or layer not in (LATEST, HISTORY):
            return None
        key = (study, arm, seed, layer, steps[-1])
        if key not in self._kept:
            self._kept[key] = self._picture(study, arm, seed, layer)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _steps(self, study: str, arm: str, seed: int) -> list[int]:
        """Those at which a map was recorded, by the names of its files."""
        names = run_folder(self._runs, study, arm, seed).records.glob(f"{RECORD}-*.safetensors")
        found = (path.stem.removeprefix(f"{RECORD}-") for path in names)
        return sorted(int(step) for step in found if step.isdecimal())

    def _picture(self, study: str, arm: str, seed: int, layer: str) -> bytes:
        from fairtune.analysis.maps import read_maps  # with all that draws: a second that other pages need not wait for
        from fairtune.report.figures.canvas import drawing, png, reduced
        from fairtune.report.sections.maps.cell_maps import combined_map, over_epochs

        records = read_maps(run_folder(self._runs, study, arm, seed))
        if not records:
            raise LedgerError("this run's maps were done again from an earlier step; the next ones are to come.")
        with drawing(ink="black", page="white"):
            title = f"{arm} seed {seed}"
            return reduced(
                png(combined_map(records[-1], title) if layer == LATEST else over_epochs(records, title), dots=110)
            )
