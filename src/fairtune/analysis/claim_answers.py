"""Claims answered from a study's results: what is asked, of which comparison, and what to mind about its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtune.analysis.claim_answer import NOT_RUN, Answer
from fairtune.analysis.claimed_costs import answer_map, answer_share, answer_speed, answer_spread
from fairtune.analysis.claimed_quality import answer_quality, margin_of
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.ledger.seals import DAMAGED, FAILED, FINISHED
from fairtune.settings.claims import MAP, SHARE, SPEED, SPREAD, Claim
from fairtune.settings.metrics import title_of

if TYPE_CHECKING:
    from fairtune.analysis.results import Results

COSTS = (SPEED, SPREAD, SHARE, MAP)
"""Kinds that compare no scores."""


def answer_claims(
    results: Results, claims: Sequence[Claim], protocol: int | None = None, allowed: float | None = None
) -> list[Answer]:
    """Answer claims from a study's results, in their order.

    Args:
        protocol: under which runs must have been made to count; None takes them as they are.
        allowed: the highest speed-up that counted work allows, where it is known without a timing experiment.

    Raises:
        FairtuneError: a claim names an arm that the study does not have, or a unit that its metric does not have.
    """
    whole = results.whole
    for claim in claims:
        _require_arms(whole, claim)
    made = whole.plan.get("protocol")
    if protocol is not None and made != protocol:
        reason = (
            f"The runs on record were made under protocol {made}, and this fairtune has protocol {protocol}: they are not "
            "counted. Run the study again."
        )
        return [_finish(whole, Answer(claim, NOT_RUN, reason, whole.study)) for claim in claims]
    return [_finish(whole, _answer(whole, claim, claims, allowed)) for claim in claims]


def _require_arms(results: Results, claim: Claim) -> None:
    for arm in claim.arms:
        if arm not in results.plan["arms"]:
            raise FairtuneError(
                f"a claim is about the arm '{arm}', which study '{results.study}' does not have; its arms: "
                f"{one_of(results.arms)}.{nearest(arm, results.arms)}"
            )


def _answer(results: Results, claim: Claim, claims: Sequence[Claim], allowed: float | None) -> Answer:
    if claim.kind == SPEED:
        return answer_speed(results, claim, allowed)
    if claim.kind == SHARE:
        return answer_share(results, claim)
    if claim.kind == MAP:
        return answer_map(results, claim)
    if claim.kind == SPREAD:
        return answer_spread(results, claim)
    asked = results.by(claim.metric) if claim.metric is not None else results
    if claim.within is not None:
        asked = asked.with_margin(margin_of(asked, claim.within))
    elif claim.as_good_as is not None and asked.registration.compare.get("margin") is None:
        raise FairtuneError(
            f"{claim.arm} is claimed to be as good as {claim.as_good_as}, and nothing says to within how much: state "
            "`within: 1 points` in the claim, or `compare.margin` in the study."
        )
    alike = [one for one in claims if (one.metric, one.within) == (claim.metric, claim.within)]
    return answer_quality(asked, claim, alike)


def _finish(results: Results, answer: Answer) -> Answer:
    """With what to mind, where it comes from and how to see it again."""
    claim, figures = answer.claim, answer.figures
    compared = f"{figures.arm}~{figures.against}" if figures and figures.against else "~".join(claim.arms)
    about = claim.kind if claim.kind in COSTS else f"metric:{claim.metric or results.metric}"
    plan = results.plan
    signature = (
        f"fairtune:{plan.get('fairtune')}|protocol:{plan.get('protocol')}|study:{results.study}|plan:{plan['plan']}|"
        f"compared:{compared}|{about}"
    )
    verb = "report" if claim.kind in COSTS else "verdict"
    return replace(
        answer,
        notes=(*answer.notes, *_notes(results, answer)),
        signature=signature + (f"|n:{figures.n}" if figures else ""),
        command=f"fairtune {verb} {results.study}",
    )


def _notes(results: Results, answer: Answer) -> list[str]:
    """What to mind about the runs of the arms that were compared."""
    if answer.claim.kind in COSTS:
        return []
    figures = answer.figures
    arms = {*answer.claim.arms, *((figures.against,) if figures and figures.against else ())}
    runs = [run for run in results.runs if run.arm in arms]
    waiting = [run for run in runs if run.status not in (FINISHED, FAILED, DAMAGED)]
    found = []
    metric = answer.claim.metric
    if metric is not None and metric not in (results.metric, *results.registration.beside):
        found.append(
            f"{title_of(metric)} is not among the metrics that the plan names; the study's own is {title_of(results.metric)}"
        )
    if waiting:
        found.append(f"{len(waiting)} of {len(runs)} runs of these arms are still to come")
    lost = [f"{run.arm}/seed-{run.seed}" for run in runs if run.status in (FAILED, DAMAGED)]
    if lost:
        found.append(f"without a score: {', '.join(lost)}")
    found += [str(one) for arm, one in results.collapses.items() if arm in arms]
    found += [f"the plan was changed: {change}" for change in results.registration.changes if change.known]
    found += [f"not counted: {text}" for text in results.exclusions if text.partition("/")[0] in arms]
    refusals = [str(caution) for caution in results.cautions if caution.grade == "refusal"]
    return found + [f"the study was forced to run: {text}" for text in refusals]
