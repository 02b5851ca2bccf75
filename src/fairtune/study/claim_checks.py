"""What can be wrong with a study's claims, and which comparison decides each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from fairtune.core.errors import nearest, one_of, shown
from fairtune.settings.claims import MAP, POINTS, RANK, SHARE, SPEED, SPREAD, Claim, read_amount
from fairtune.settings.metrics import METRICS, metrics_of_kind, title_of
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.added_arms import missing_controls
from fairtune.study.checks import has_known_task
from fairtune.study.metric_checks import OF_KIND
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.corpora import is_text

NAMES = ("arm", "better_than", "worse_than", "as_good_as", "than", "steadier_than")
"""Fields of a claim that name an arm."""


def claim_problems(study: Study, origins: Origins) -> list[Problem]:
    """Claims about arms that are not there, without a margin that they need, or in a unit that their metric does not have."""
    found: list[tuple[Path, str]] = []
    for place, claim in enumerate(study.claims):
        path: Path = ("claims", place)
        found += _unknown_arms(study, claim, path)
        found += _unfit_figures(study, claim, path)
        if claim in study.claims[:place]:
            found.append((path, f"says the same as claims[{study.claims.index(claim)}]; keep one of them"))
    return [Problem(origins.of(path), dotted(path), reason) for path, reason in found]


def _unknown_arms(study: Study, claim: Claim, path: Path) -> Iterator[tuple[Path, str]]:
    arms = [
        *study.arms,
        *(missing_controls(study).values() if study.controls and study.compare.to in study.arms else ()),
    ]
    named: list[tuple[Path, str | None]] = [((*path, name), getattr(claim, name)) for name in NAMES]
    named += [((*path, "rank", place), arm) for place, arm in enumerate(claim.rank or ())]
    for where, arm in named:
        if arm is not None and arm not in arms:
            yield where, f"no arm is called {shown(arm)}; arms: {one_of(arms)}.{nearest(arm, arms)}"


def _unfit_figures(study: Study, claim: Claim, path: Path) -> Iterator[tuple[Path, str]]:
    if claim.as_good_as is not None and claim.within is None and study.compare.margin is None:
        yield (
            (*path, "as_good_as"),
            "nothing says to within how much: add `within: 1 points` to the claim, or `compare.margin` to the study",
        )
    if claim.faster is not None and claim.than is None and claim.arm == study.compare.to:
        yield (
            (*path, "faster"),
            f"{claim.arm} is what the others are compared to, so say which it is faster than: add `than`",
        )
    if not has_known_task(study):
        return
    text = is_text(study.task)
    kind = TEXT if text else "classify"
    if claim.metric is not None and METRICS[claim.metric].kind != kind:
        other = OF_KIND[METRICS[claim.metric].kind]
        allowed = one_of(metrics_of_kind(kind))
        yield (*path, "metric"), f"{claim.metric} is for {other}, which this task is not; use one of {allowed}"
        return
    metric = claim.metric or study.metric or (metrics_of_kind(TEXT)[0] if text else None)
    for name in ("by", "within"):
        amount = getattr(claim, name)
        if amount and metric and METRICS[metric].shown == "plain" and read_amount(amount)[1] == POINTS:
            reason = f"{title_of(metric)} is not in hundredths, so it has no points; write a share of the other arm's, such as 5%"
            yield (*path, name), reason


def deciding_comparison(claim: Claim, primaries: Mapping[str, str | None], reference: str, timed: bool = False) -> str:
    """Which comparison answers a claim, in words that follow its text and a colon.

    Args:
        primaries: of each arm, the arm that it is compared with.
        timed: the study times its arms when its runs are finished.
    """
    if claim.kind == SHARE:
        return "counted when a run of it starts"
    if claim.kind == MAP:
        return "read from the map at the end of its runs"
    if claim.kind in (SPEED, SPREAD):
        other = claim.than or claim.steadier_than or primaries.get(claim.arm or "") or reference
        how = (
            "timed when the runs are finished"
            if timed
            else "timed by `fairtune time`; `time: true` makes it part of the study"
        )
        return f"decided by {claim.arm} against {other}, {how}"
    if claim.kind == RANK:
        arms = claim.rank or ()
        return "decided by " + "; ".join(_pair(*pair, primaries, reference) for pair in pairwise(arms))
    return f"decided by {_pair(str(claim.arm), str(claim.other), primaries, reference)}"


def _pair(arm: str, other: str, primaries: Mapping[str, str | None], reference: str) -> str:
    for one, base in ((arm, other), (other, arm)):
        primary = primaries.get(one)
        if primary is not None and primary == base:
            return f"{one} against {base}, as planned"
        if primary is not None and base == reference:
            return f"{one} against {primary}, which has its settings; {base} has not, and no verdict is made with it"
    return f"{arm} against {other}, which the plan does not compare: corrected with the others, if they differ in methods alone"
