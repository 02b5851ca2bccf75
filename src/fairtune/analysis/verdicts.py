"""Verdicts: what the evidence supports about an arm, in words, and no more than that.

The comparisons of a family are corrected together (Holm); where verdicts were taken before, while seeds were added, each look
spends its share of the risk (O'Brien and Fleming).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairtune.analysis.looks import EXTENSION, MOST, nominal_level, overall_p
from fairtune.analysis.power import SEEDS, Outlook, seeds_to_settle
from fairtune.analysis.power_sentences import describe_outlook
from fairtune.analysis.scales import scale_of
from fairtune.analysis.statistics import PairedDifference, holm
from fairtune.settings.metrics import METRICS

BETTER, WORSE, INFERIOR = "better", "worse", "inferior"
NOT_INFERIOR, EQUIVALENT = "not inferior", "equivalent"
NOT_SEPARABLE, NOT_SHOWN, NONE = "not separable", "not shown", "no verdict"
SETTLED = (BETTER, WORSE, INFERIOR, NOT_INFERIOR, EQUIVALENT)
"""Words that say something about the arm, not about the evidence."""
Interval = tuple[float | None, float | None]


@dataclass(frozen=True)
class Verdict:
    """What one comparison supports.

    Args:
        p: of no difference, corrected by Holm over the family, and for looks.
        note: what is missing, or what to mind.
        family: the interval that the whole family shares; it leaves out zero only where the corrected p is below the risk.
        needed: seeds in all that could settle it, lowest and highest; None where it is settled or seeds cannot.
    """

    word: str
    p: float | None
    note: str
    family: Interval = (None, None)
    needed: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.word} ({self.note})" if self.note else self.word

    @property
    def settled(self) -> bool:
        return self.word in SETTLED


@dataclass(frozen=True)
class Schedule:
    """When verdicts were taken.

    Args:
        looks: numbers of seeds at each, the last being now.
        most: seeds at which all of the risk is spent.
        share: of the risk that looks after the first may spend in all, where the first was planned as the only one and has
            spent all of it; None where looks were planned.
    """

    looks: tuple[int, ...]
    most: int
    share: float | None = None

    def overall(self, p: float, look: int) -> float:
        """A plain p of one of the looks, as a p that holds however often one looks."""
        if self.share is None:
            return overall_p(p, self.looks[: look + 1], self.most)
        return p if look == 0 else min(1.0, overall_p(p, self.looks[: look + 1], self.most) / self.share)

    def level(self, risk: float) -> float:
        """The plain p that is needed now for an overall risk."""
        return nominal_level(self.looks, self.most, risk * (self.share or 1.0))

    def level_at(self, n: int, risk: float) -> float:
        """The plain p that will be needed if the next look is at so many seeds."""
        before = tuple(look for look in self.looks if look < n)
        return nominal_level((*before, n), max(n, self.most), risk * (self.share or 1.0))


@dataclass(frozen=True)
class Family:
    """Comparisons that are corrected together.

    Args:
        confidence: that no verdict of the family is wrong.
        schedules: of each comparison; None, and none at all, is one look, as planned.
        earlier: of each comparison, what it was at each look before.
        others: comparisons that count in the correction although they are not among these, such as those of arms given up.
    """

    confidence: float
    metric: str | None = None
    lower_is_better: bool = False
    schedules: Sequence[Schedule | None] = ()
    earlier: Sequence[Sequence[PairedDifference]] = ()
    others: int = 0

    @property
    def risk(self) -> float:
        return 1 - self.confidence

    def schedule(self, place: int) -> Schedule | None:
        return self.schedules[place] if self.schedules else None


def judge(
    found: Sequence[PairedDifference],
    margin: float | Sequence[float | None] | None,
    confidence: float,
    lower_is_better: bool = False,
) -> list[Verdict]:
    """A verdict for each comparison of a family that is looked at once, all corrected together.

    Args:
        margin: a loss that would not matter, on the scale of the differences; one for all comparisons, or one for each.
    """
    return judge_family(found, margin, Family(confidence, lower_is_better=lower_is_better))


def judge_family(
    found: Sequence[PairedDifference], margin: float | Sequence[float | None] | None, family: Family
) -> list[Verdict]:
    """The same for any family."""
    tested = _Tested(found, margin, family)
    return [tested.verdict(place) for place in range(len(found))]


Test = Callable[[PairedDifference, float | None], float | None]


def _no_difference(gain: PairedDifference, _: float | None) -> float | None:
    return gain.p


def _loss(gain: PairedDifference, margin: float | None) -> float | None:
    """p of a loss of the margin or more: a one-sided test at half the risk, as is usual for non-inferiority.

    Doubled, so that one threshold serves both this and the two-sided test.
    """
    p = None if margin is None else gain.chance_below(-margin)
    return None if p is None else min(1.0, 2 * p)


def _small_loss(gain: PairedDifference, margin: float | None) -> float | None:
    """p of a loss of the margin or less, in the same way."""
    p = None if margin is None else gain.mirrored().chance_below(margin)
    return None if p is None else min(1.0, 2 * p)


def _either(gain: PairedDifference, margin: float | None) -> float | None:
    """p of a loss or a gain of the margin or more: two one-sided tests."""
    ends = [_loss(gain, margin), _loss(gain.mirrored(), margin)]
    known = [p for p in ends if p is not None]
    return max(known) if known else None


class _Tested:
    """Every p of a family, corrected, and the words that follow."""

    def __init__(
        self, found: Sequence[PairedDifference], margin: float | Sequence[float | None] | None, family: Family
    ) -> None:
        self.family = family
        self.gains, *earlier = [
            [f.mirrored() if family.lower_is_better else f for f in part] for part in (found, *family.earlier)
        ]
        self.earlier = earlier or [[] for _ in found]
        self.margins = list(margin) if isinstance(margin, Sequence) else [margin] * len(found)
        self.made = sum(gain.p is not None for gain in self.gains)
        self.p, self.loss, self.small_loss, self.either = map(
            self._corrected, (_no_difference, _loss, _small_loss, _either)
        )

    def _corrected(self, test: Test) -> list[float | None]:
        found = [self._repeated(test, place) for place in range(len(self.gains))]
        return holm([*found, *([1.0] * self.family.others)])[: len(found)]

    def _repeated(self, test: Test, place: int) -> float | None:
        """p of a test over all looks; those that found a difference of the other sign say nothing for this one."""
        now = self.gains[place]
        p, schedule = test(now, self.margins[place]), self.family.schedule(place)
        if p is None or schedule is None:
            return p
        found = [schedule.overall(p, len(schedule.looks) - 1)]
        for look, before in enumerate(self.earlier[place]):
            earlier = test(before, self.margins[place])
            # What was shown stays shown only as long as what came after bears it out.
            if earlier is not None and before.difference * now.difference > 0 and p < self.family.risk:
                found.append(schedule.overall(earlier, look))
        return min(found)

    def verdict(self, place: int) -> Verdict:
        gain, p = self.gains[place], self.p[place]
        if gain.trouble:
            return Verdict(NONE, None, gain.trouble)
        if p is None:
            count = "no run" if gain.n == 0 else "one run only"
            return Verdict(NONE, None, f"{count} to compare; two seeds or more are needed")
        risk, schedule = self.family.risk / (self.made + self.family.others), self.family.schedule(place)
        low, high = gain.interval(schedule.level(risk) if schedule else risk)
        family = (low, high) if not self.family.lower_is_better else (_minus(high), _minus(low))
        if gain.n == 2:
            return Verdict(NONE, p, f"too few seeds for a verdict ({self._two_seeds(gain)})", family)
        word, note = self._word(place, p)
        if word:
            return Verdict(word, p, note, family)
        outlook, advice = self._outlook(place, p)
        leans = "better" if gain.difference > 0 else "worse"
        leaning = f"leans {leans}, not shown; " if gain.p is not None and gain.p < self.family.risk else ""
        return Verdict(NOT_SEPARABLE, p, leaning + advice, family, _seeds(outlook))

    def _word(self, place: int, p: float) -> tuple[str, str]:
        """The word, and what to mind; neither where nothing is settled."""
        gain, risk = self.gains[place], self.family.risk
        behind = "higher" if self.family.lower_is_better else "lower"
        loss, small_loss, either = self.loss[place], self.small_loss[place], self.either[place]
        alike = either is not None and either < risk
        if p < risk and gain.difference > 0:
            return BETTER, "by less than the margin" if alike else ""
        hidden = f"{behind}, but by less than the margin" if p < risk else ""
        if alike:
            return EQUIVALENT, hidden
        if loss is not None and loss < risk:
            return NOT_INFERIOR, hidden
        if small_loss is not None and small_loss < risk:
            return INFERIOR, ""
        if p < risk:
            return WORSE, "" if self.margins[place] is None else "not shown to exceed the margin"
        return "", ""

    def _outlook(self, place: int, p: float) -> tuple[Outlook | None, str]:
        """What it would take to settle an open comparison, if the others stay where they are, and that in words."""
        gain, margin, schedule = self.gains[place], self.margins[place], self.family.schedule(place)
        own = self._repeated(_no_difference, place)
        risk = self.family.risk / (max(1.0, p / own) if own else 1.0)
        ahead = schedule or Schedule((gain.n,), max(gain.n, MOST), EXTENSION)
        added = seeds_to_settle(gain, lambda n: ahead.level_at(n, risk), margin, gain.units)
        item = f"test {gain.unit}"
        if added is None:
            return None, "more seeds could settle it"
        if schedule is None and (added.high is None or added.high > MOST):
            anew = seeds_to_settle(gain, lambda _: risk, margin, gain.units)
            if anew is not None and anew.kind == SEEDS:
                many = f"{anew.low} to {anew.high}" if anew.low != anew.high else str(anew.high)
                return anew, f"a new study, planned with {many} seeds, could settle it"
            added = anew or added
        return added, describe_outlook(added, gain.n, item)

    def _two_seeds(self, gain: PairedDifference) -> str:
        first, second = gain.by_seed if len(gain.by_seed) == 2 else (gain.difference, gain.difference)
        if first * second <= 0:
            if first == second:
                return "no difference in either seed"
            return "one seed above, one below" if first * second < 0 else "no difference in one of the seeds"
        nearer = min(abs(first), abs(second))
        above = (first > 0) != self.family.lower_is_better
        return f"both seeds {_at_least(self.family.metric, nearer, above)} {'above' if above else 'below'}"


def _seeds(outlook: Outlook | None) -> tuple[int, int] | None:
    if outlook is None or outlook.low is None or outlook.high is None:
        return None
    return outlook.low, outlook.high


def _at_least(metric: str | None, distance: float, above: bool) -> str:
    """A distance between two arms, rounded down: 46 points or more."""
    if metric is None or metric not in METRICS:
        return f"{distance:.3g} or more"
    if METRICS[metric].ratios:
        return f"{_rounded_down(100 * abs(math.expm1(distance if above else -distance)))} % or more"
    scale = scale_of(metric)
    unit = "" if scale.plain else " points"
    return f"{_rounded_down(scale.factor * distance)}{unit} or more"


def _rounded_down(value: float) -> str:
    places = 0 if value >= 10 else 1 if value >= 1 else 3
    return f"{math.floor(value * 10**places + 1e-6) / 10**places:g}"  # 1.1 points may be stored as 1.0999...


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
