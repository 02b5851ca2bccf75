"""Runs as live views show them: how far each is, what it does, and what is left of it."""

from __future__ import annotations

from fairtune.ledger.scan import CLOSED, LedgerScan, RunProgress, RunRow
from fairtune.ledger.seals import DAMAGED, FAILED, RUNNING, WAITING
from fairtune.ledger.worker_signs import WorkerSign
from fairtune.monitor.remaining_time import with_left
from fairtune.monitor.study_moment import StudyMoment, metric_of
from fairtune.monitor.study_view import RunView
from fairtune.monitor.terminal import LEARNER_PHASES, PHASES

REMEMBERED = 2000
"""Runs that have ended whose views are kept."""


class RunViews:
    """The views of runs; those of runs that have ended are made once."""

    def __init__(self, live: LedgerScan) -> None:
        self._live = live
        self._ended: dict[tuple[str, str, int], tuple[RunRow, RunView]] = {}

    def view(self, now: StudyMoment, row: RunRow, position: int) -> RunView:
        """A run; of one that has ended, what was found before."""
        key = (now.study, row.arm, row.seed)
        kept = self._ended.get(key)
        if kept is not None and kept[0] == row and kept[1].position == position:
            return kept[1]
        found = self._make(now, row, position)
        if row.status in CLOSED:
            if len(self._ended) >= REMEMBERED:
                self._ended.clear()
            self._ended[key] = row, found
        return found

    def _make(self, now: StudyMoment, row: RunRow, position: int) -> RunView:
        planned, metric = now.planned.get((row.arm, row.seed), {}), metric_of(now.plan)
        steps = planned.get("steps") or None
        begun = row.status not in (WAITING, DAMAGED)
        progress = self._live.progress(now.study, row.arm, row.seed) if begun else RunProgress(steps)
        sign = now.at_work.get(f"{row.arm}/seed-{row.seed}") if row.status == RUNNING else None
        validated = progress.scores.get(metric) if metric else None
        ended_on = "validation" if "trial" in (now.plan["arms"].get(row.arm) or {}) else "test"
        score, split = (row.score, ended_on) if row.score is not None else (None, None)
        if score is None and validated:
            score, split = validated[-1][1], "validation"
        spent = None if progress.began is None or progress.seen is None else max(0.0, progress.seen - progress.began)
        epochs = ((planned.get("settings") or {}).get("train") or {}).get("epochs")
        running = row.status == RUNNING
        found = RunView(
            row.arm,
            row.seed,
            position,
            row.status,
            step=progress.step if begun and steps else None,
            steps=steps,
            epoch=_epoch(progress, steps, epochs) if begun else None,
            epochs=epochs,
            loss=progress.loss,
            score=score,
            split=split,
            speed=progress.speed if running else None,
            seconds=row.seconds if row.seconds is not None else spent,
            phase=(_phase(sign) or "training") if running else None,
            worker=sign.worker if sign else None,
            reason=row.reason or (progress.failed if row.status == FAILED else None),
            warnings=tuple(progress.warnings),
        )
        return with_left(found, now.usual)


def _epoch(progress: RunProgress, steps: int | None, epochs: float | None) -> float | None:
    """Passes over the training examples so far; whole ones where the plan does not say how many there will be."""
    if not steps:
        return None
    return progress.epoch if epochs is None else epochs * progress.step / steps


def _phase(sign: WorkerSign | None) -> str:
    """What a run does, in words."""
    if sign is None or not sign.phase:
        return ""
    words = (
        PHASES.get(sign.phase) or LEARNER_PHASES.get(sign.phase) or {"train": "training"}.get(sign.phase, sign.phase)
    )
    return f"{words}, {sign.done or 0:,} of {sign.of:,}" if sign.of and sign.phase != "train" else words
