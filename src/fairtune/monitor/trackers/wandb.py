"""Weights & Biases: a run per run, grouped by arm, and one more run per arm with its figures.

Online, a run is continued where W&B's server has it. Offline, W&B cannot continue a run that it has closed: there a run is written
whole once it is no longer under way, and a folder that a later state replaces is removed, so that `wandb sync` sends each run once.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read when wandb is imported

import wandb

from fairtune.monitor.trackers.base import MarkFile, TrackerError
from fairtune.monitor.trackers.rows import TrackedPoint, TrackedRow, TrackedStudy, digest
from fairtune.settings.track import WandbTracker

LONGEST = 128
"""Characters of a name."""
QUIET = {
    "silent": True, "console": "off", "disable_git": True, "save_code": False, "disable_code": True,
    "x_disable_stats": True, "x_disable_machine_info": True, "x_disable_meta": True, "x_save_requirements": False,
}  # fmt: skip
"""The ledger says where runs happened; this process is not where."""


class WandbRuns:
    """Writes runs of a project."""

    name = "wandb"

    def __init__(self, settings: WandbTracker, study: str) -> None:
        mode = os.environ.get("WANDB_MODE", "online")
        if mode == "disabled":
            raise TrackerError("wandb is disabled by WANDB_MODE; set it to offline or online.")
        self._offline = settings.offline or mode in ("offline", "dryrun")
        self.live = not self._offline
        if self.live and not wandb.login(prompt=False):
            raise TrackerError(
                "wandb is not logged in; call `wandb login`, or write files with --offline (offline: true)."
            )
        self._project = re.sub(r"[/\\#?%:]", "_", settings.project or study)[:LONGEST]
        self._entity = settings.entity
        self._folder = Path(settings.folder or os.environ.get("WANDB_DIR") or ".")
        here = f"{self._folder / 'wandb'}; send it with: wandb sync {self._folder / 'wandb' / 'offline-run-*'}"
        self.place = here if self._offline else f"project {self._project}"
        self._marks = MarkFile(Path())
        self._identity = ""
        self._open: dict[str, Any] = {}

    def begin(self, study: TrackedStudy) -> None:
        self._identity = study.identity
        (self._folder / "wandb").mkdir(parents=True, exist_ok=True)
        how = digest([self._offline, self._project, self._entity])[:8]
        self._marks = MarkFile(self._folder / "wandb" / f"fairtune-{study.identity}-{how}.json")

    def marks(self) -> Mapping[str, str]:
        """Those of rows that are there; online W&B is believed to keep what it was sent."""
        found, rows = self._marks.marks(), self._marks.rows
        return {name: mark for name, mark in found.items() if not self._offline or self._is_there(rows[name])}

    def _is_there(self, row: Mapping[str, Any]) -> bool:
        return any((self._folder / "wandb" / str(row.get("folder"))).glob("*.wandb"))

    def sent(self, row: TrackedRow) -> Mapping[str, int]:
        return {} if self._offline else {"*": self._run(row).starting_step - 1}

    def send(self, row: TrackedRow, points: Sequence[TrackedPoint], mark: str) -> None:
        if self._offline:
            for old in (self._folder / "wandb").glob(f"offline-run-*-{self._id(row)}"):
                shutil.rmtree(old)
        run = self._run(row)
        if row.seed is not None or not self._offline:
            for point in points:
                run.log({**point.values, "_timestamp": point.time}, step=point.step)
        run.config.update(row.params | row.tags, allow_val_change=True)
        said: dict[str, float | str] = {name: row.tags[name] for name in ("verdict", "reason") if name in row.tags}
        run.summary.update(said | row.figures)
        folder = Path(run.dir).parent.name
        if self._offline or row.state != "running":
            self._open.pop(row.name).finish(exit_code=0 if row.state in ("finished", "running") else 1)
            self._marks.keep(row.name, mark, folder=folder)

    def _run(self, row: TrackedRow) -> Any:
        """W&B's run of a row, open."""
        if row.name not in self._open:
            self._open[row.name] = wandb.init(
                project=self._project, entity=self._entity, id=self._id(row), name=row.name[:LONGEST],
                group=row.arm[:LONGEST], job_type="arm" if row.seed is None else "run", dir=self._folder,
                notes=(row.tags.get("verdict") or row.tags.get("reason") or "")[:1000] or None,
                mode="offline" if self._offline else "online", resume=None if self._offline else "allow",
                reinit="create_new", settings=wandb.Settings(**QUIET),
            )  # fmt: skip
        return self._open[row.name]

    def _id(self, row: TrackedRow) -> str:
        return digest([self._identity, row.name, row.key])[:16]

    def send_study(self, study: TrackedStudy) -> None:
        """W&B has no place for a text of a whole project; each arm's run says its verdict."""

    def flush(self) -> None:
        self._marks.save()

    def close(self) -> None:
        for run in self._open.values():
            run.finish()
        self._open.clear()
        if self._identity:
            self.flush()
        wandb.teardown()
