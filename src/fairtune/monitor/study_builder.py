"""Builds what live views show, from the ledger alone; ticked again and again, it reads what is new and remembers the rest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.locks import is_locked
from fairtune.core.numbers import plural
from fairtune.core.printable import printable
from fairtune.ledger.scan import LedgerScan, RunRow
from fairtune.ledger.seals import DAMAGED, FINISHED, RUNNING, WAITING
from fairtune.ledger.worker_signs import SeenSign
from fairtune.monitor.arm_curves import KeptCurves
from fairtune.monitor.judgement import ENDED, ArmFigures, Judge, Judgement, judge, peeking_text, whole_seeds
from fairtune.monitor.log_lines import last_lines
from fairtune.monitor.remaining_time import study_left, usual_seconds
from fairtune.monitor.run_views import RunViews
from fairtune.monitor.study_moment import (
    SHOWN,
    StudyMoment,
    about_study,
    begun,
    listed_runs,
    metric_of,
    primary_of,
    state_of,
)
from fairtune.monitor.study_view import ArmView, CurvesView, DeviceView, RunView, StudyView, VerdictView

LOG_LINES = 30
BEING_JUDGED = "All runs have ended; the verdict is being worked out."
UNCOUNTED = "A look at it is not counted, and it may change: verdicts are taken when all runs have ended."


class StudyBuilder:
    """The views of the studies in a runs folder.

    Args:
        study: read this one alone.
        judged: whether verdicts are worked out: `beside`, in a thread; `now`, before a view is answered; or `never`.
    """

    def __init__(
        self,
        runs: Path,
        study: str | None = None,
        judged: str = "beside",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs = runs
        self.live = LedgerScan(runs, study, clock=clock)
        work = partial(judge, states=self.live.states)
        self.judge = None if judged == "never" else Judge(runs, judged == "beside", work)
        self._views = RunViews(self.live)
        self._curves: dict[str, KeptCurves] = {}

    def tick(self) -> set[str]:
        """Read what is new; the studies in which anything changed.

        Raises:
            LedgerError: the runs folder is missing or cannot be read.
        """
        return self.live.tick()

    @property
    def studies(self) -> list[str]:
        return list(self.live.studies)

    def view(self, study: str) -> StudyView:
        """A study as it is now, or what is wrong with it."""
        try:
            now = self._moment(study)
        except LedgerError as error:
            return StudyView(study, "unreadable", problem=str(error))
        states = {(row.arm, row.seed): row.status for row in now.rows}
        built = [self._views.view(now, row, position) for position, row in listed_runs(now.rows)]
        judgement = self._judgement(now)
        return replace(
            self._brief(now, built),
            arms=tuple(self._arms(now.plan, now.rows, judgement)),
            runs=tuple(built),
            devices=tuple(_device(seen) for seen in now.signs),
            verdict=self._verdict(states, judgement),
            log=tuple(self._log(study, built)),
        )

    def brief(self, study: str) -> StudyView:
        """A study in a line: its state, its counts, and how many arms it has."""
        try:
            now = self._moment(study)
        except LedgerError as error:
            return StudyView(study, "unreadable", problem=str(error))
        running = [self._views.view(now, row, place) for place, row in enumerate(now.rows) if row.status == RUNNING]
        return replace(self._brief(now, running), arms=tuple(self._arms(now.plan, now.rows, None)))

    def metric(self, study: str) -> str | None:
        """The metric that decides; None where the plan does not say."""
        try:
            return metric_of(self.live.plan(study))
        except LedgerError:
            return None

    def arms_with(self, study: str, method: str) -> set[str]:
        """The arms of a study that use a method."""
        try:
            plan = self.live.plan(study)
        except LedgerError:
            return set()
        uses = {
            arm: [use for use in own.get("methods") or () if isinstance(use, dict)] for arm, own in plan["arms"].items()
        }
        return {arm for arm, own in uses.items() if any(method in use for use in own)}

    def _brief(self, now: StudyMoment, built: Sequence[RunView]) -> StudyView:
        return StudyView(
            now.study,
            state_of(now.counts, now.held or bool(now.at_work)),
            about=about_study(now.plan),
            metric=metric_of(now.plan),
            counts=dict(now.counts),
            total=len(now.rows),
            left=study_left(now.rows, built, now.planned, now.usual),
        )

    def _moment(self, study: str) -> StudyMoment:
        """Raises:
        LedgerError: its plan cannot be read, or it is gone.
        """
        plan, signs = self.live.plan(study), self.live.signs(study)
        at_work = {seen.sign.run: seen.sign for seen in signs if seen.sign.run and seen.fresh}
        rows = [begun(row, at_work) for row in self.live.rows(study)]
        return StudyMoment(
            study,
            plan,
            rows,
            {(run["arm"], run["seed"]): run for run in plan["runs"]},
            signs,
            at_work,
            is_locked(self.runs / study / ".lock"),
            usual_seconds(rows),
            Counter(row.status for row in rows),
        )

    def curves(self, study: str) -> CurvesView:
        """The curves of a study, by arm."""
        try:
            plan = self.live.plan(study)
        except LedgerError:
            return CurvesView()
        if study not in self._curves:
            self._curves[study] = KeptCurves()
        rows = [row for row in self.live.rows(study) if row.status not in (WAITING, DAMAGED)]
        return self._curves[study].view(plan, rows, lambda row: self.live.progress(study, row.arm, row.seed))

    def run_views(
        self, study: str, state: str = "", arm: str = "", start: int = 0, most: int = SHOWN
    ) -> tuple[int, list[RunView]]:
        """How many runs match, and some of them, in the plan's order.

        Raises:
            LedgerError: the study's plan cannot be read, or it is gone.
        """
        now = self._moment(study)
        found = [(i, row) for i, row in enumerate(now.rows) if state in ("", row.status) and arm in ("", row.arm)]
        return len(found), [self._views.view(now, row, i) for i, row in found[start : start + most]]

    def run_view(self, study: str, arm: str, seed: int) -> RunView | None:
        """One run; None where the plan has no such run.

        Raises:
            LedgerError: the study's plan cannot be read, or it is gone.
        """
        now = self._moment(study)
        found = ((i, row) for i, row in enumerate(now.rows) if (row.arm, row.seed) == (arm, seed))
        return next((self._views.view(now, row, i) for i, row in found), None)

    def _arms(self, plan: Mapping[str, Any], rows: Sequence[RunRow], judgement: Judgement | None) -> Iterable[ArmView]:
        counts: dict[str, Counter[str]] = {arm: Counter() for arm in plan["arms"]}
        for row in rows:
            counts.setdefault(row.arm, Counter())[row.status] += 1
        reference = plan["compare"].get("to")
        for place, (arm, found) in enumerate(counts.items()):
            known = judgement.arms.get(arm) if judgement is not None else None
            against = None if arm == reference else primary_of(plan, arm)
            figures = known or ArmFigures(0, None, None, None, against)
            yield ArmView(
                arm, place, found[FINISHED], found.total(), dict(found),
                **{**vars(figures), "against": figures.against or against},
            )  # fmt: skip

    def _judgement(self, now: StudyMoment) -> Judgement | None:
        if self.judge is None or not now.counts[FINISHED]:
            return None
        ended = [row for row in now.rows if row.status in ENDED]
        key = (
            (str(now.plan.get("plan")),),  # with other comparisons or margins the same runs say something else
            *((row.arm, row.seed, row.status, row.score, row.seconds) for row in ended),
        )
        found = self.judge.latest(now.study, key, now.counts[RUNNING] > 0)
        outdated = found is not None and found.key != key and len(ended) == len(now.rows)
        return found.without_words() if found is not None and outdated else found

    def _verdict(self, states: Mapping[tuple[str, int], str], judgement: Judgement | None) -> VerdictView:
        n, planned = whole_seeds(dict(states))
        open_runs = sum(state not in ENDED for state in states.values())
        peeking = peeking_text(n, planned) if open_runs else ""
        notes = [UNCOUNTED] if open_runs else []
        if judgement is None:
            finished = any(state == FINISHED for state in states.values())
            waiting = "The first verdict is being worked out." if finished and self.judge is not None else ""
            return VerdictView(peeking=peeking, n=n, planned=planned, note=waiting)
        if not (open_runs or judgement.opening or judgement.problem):
            notes.append(BEING_JUDGED)
        behind = sum(state == FINISHED for state in states.values()) - judgement.counted
        if behind > 0 and not judgement.problem:
            some = plural(behind, "run that has finished since is", "runs that have finished since are")
            notes.insert(0, f"{some} not counted yet.")
        return VerdictView(judgement.opening, peeking, n, planned, " ".join(notes), judgement.problem, judgement.made)

    def _log(self, study: str, built: Sequence[RunView]) -> list[tuple[str, str]]:
        """What workers' libraries printed, then what runs under way and failed ones warned of."""
        found = last_lines(self.runs / study / "logs", LOG_LINES)
        said = [(f"{run.arm}/seed-{run.seed}", printable(text)) for run in built for text in run.warnings]
        return [*found, *said][-LOG_LINES:]


def _device(seen: SeenSign) -> DeviceView:
    """A worker's device; of one that has gone silent, what it last said is not repeated."""
    sign = seen.sign
    return DeviceView(
        sign.worker,
        f"{sign.device}, {sign.name}" if sign.name else sign.device,
        sign.run if seen.fresh else None,
        seen.fresh,
        round(seen.age),
        *((sign.load, sign.memory_used, sign.memory, sign.temperature, sign.others) if seen.fresh else ()),
    )
