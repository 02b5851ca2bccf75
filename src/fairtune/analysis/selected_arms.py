"""Results of which only some arms are shown. Nothing is worked out anew: verdicts stay corrected for all that was planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from fairtune.analysis.results import Results
from fairtune.analysis.timings import judge_times
from fairtune.core.cautions import Caution
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.ledger.timings import read_sessions


class SelectedResults(Results):
    """Some arms of a study's results, and those they are compared with.

    Args:
        whole: all of them.
        names: the arms that are asked for.
    """

    def __init__(self, whole: Results, names: Sequence[str]) -> None:
        self.__dict__ |= whole.__dict__
        self._whole, self._names = whole, tuple(names)
        shown = self._shown()
        self.plan = {
            **whole.plan,
            "arms": {arm: own for arm, own in whole.plan["arms"].items() if arm in shown},
            "runs": [run for run in whole.plan["runs"] if run["arm"] in shown],
        }
        worked_out = {
            "registration": whole.registration,
            "runs": [run for run in whole.runs if run.arm in shown],
            "comparisons": [c for c in whole.comparisons if c.arm in shown and c.reference in shown],
            "left_out": [c for c in whole.left_out if c.arm in shown and c.reference in shown],
            "raw_differences": [c for c in whole.raw_differences if c.arm in shown and c.reference in shown],
            "margin": whole.margin,
            "collapses": {arm: found for arm, found in whole.collapses.items() if arm in shown},
            "cautions": (self._note(shown), *whole.cautions),
            "exclusions": whole.exclusions,
            "tuning": whole.tuning,
            "timing": judge_times(whole.plan, read_sessions(whole.folder)[0], [a for a in whole.arms if a in shown]),
        }
        for name in ("_planned", "_finished"):
            self.__dict__.pop(name, None)
        self.__dict__ |= worked_out

    @property
    def whole(self) -> Results:
        return self._whole

    def by(self, metric: str) -> Self:
        return self if metric == self.metric else type(self)(self.whole.by(metric), self._names)

    def at(self, threshold: str) -> Self:
        return type(self)(self.whole.at(threshold), self._names)

    def _shown(self) -> set[str]:
        for name in self._names:
            if name not in self.whole.plan["arms"]:
                arms = self.whole.arms
                raise FairtuneError(
                    f"--arms: the study has no arm '{name}'; its arms: {one_of(arms)}.{nearest(name, arms)}"
                )
        others = {other for arm in self._names if (other := self.whole.primary(arm)) is not None}
        return {*self._names, *others, self.whole.reference}

    def _note(self, shown: set[str]) -> Caution:
        hidden = [arm for arm in self.whole.arms if arm not in shown]
        return Caution(
            grade="warning",
            code="some-arms",
            seen=f"{len(shown)} of {len(self.whole.arms)} arms are shown ({one_of(hidden)} left out with --arms)",
            why=f"verdicts stay corrected for all {len(self.whole.comparisons)} comparisons of the study, shown or not",
            do="Leave out --arms for the whole report",
        )


def only_arms(results: Results, names: Sequence[str] | None) -> Results:
    """Results with these arms alone, and those they are compared with; as they are where none, or all, are named.

    Raises:
        FairtuneError: the study has no such arm.
    """
    if not names:
        return results
    found = SelectedResults(results, names)
    return results if set(found.plan["arms"]) == set(results.plan["arms"]) else found
