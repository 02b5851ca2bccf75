"""What sections are made from: every figure is asked of the results, none is copied from a run's own summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fairtune.analysis.arm_pairs import SIMPLE, Comparison
from fairtune.analysis.comparisons import left_out_method
from fairtune.analysis.convergence import target_of
from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.analysis.results import Results
from fairtune.analysis.sentences import comparison_text
from fairtune.analysis.step_bounds import expected_ratio, lowest_ratio, same_work
from fairtune.analysis.study_verdict import family_size, frame_of, simple_family_size
from fairtune.analysis.timings import StepRatio
from fairtune.core.numbers import setting
from fairtune.report.content import (
    ArmRow,
    Confound,
    Evidence,
    Header,
    RunSpread,
    TextFacts,
    Versus,
    spread_of,
)
from fairtune.report.init_cards import CardSummary, read_card
from fairtune.report.machine import describe_machine
from fairtune.settings.few_labels import SharedSample, examples_used, shared_samples
from fairtune.settings.metrics import METRICS, metrics_of_kind, title_of

PURPOSES = ("data", "step", "method", "epoch", "fit", "score", "validation", "test", "checkpoint", "total")


UNTIMED = "its time was not measured"
FAILED_AA = "the timing experiment found the reference unlike itself"
IMPLAUSIBLE = "it seems cheaper than its operations allow"
OTHER_WORK = "its runs do other work than a number of equal steps, so that a step's time does not tell"
LOOSE = "its time was measured too loosely to tell"
"""Why the change of a step's time cannot be told."""
USED = {"train": "examples", "validation": "eval_examples", "test": "eval_examples"}


def make_evidence(results: Results) -> Evidence:
    """What sections are made from."""
    cards = (_card(results, arm) for arm in results.arms)
    return Evidence(
        results=results,
        header=make_header(results),
        rows=arm_rows(results),
        left_out=left_out(results),
        cards=tuple(card for card in cards if card is not None),
        machine=describe_machine(results.runs),
    )


def _used(plan: dict[str, Any], split: str) -> int | None:
    rows, classes = int(plan["task"]["rows"].get(split, 0)), len(plan["task"].get("labels") or ())
    found = {examples_used(arm["train"].get(USED[split]), rows, classes) for arm in plan["arms"].values()}
    return None if len(found) > 1 or rows in found else found.pop()


def _samples(plan: dict[str, Any]) -> tuple[SharedSample, ...]:
    """The training samples that the arms of a plan share."""
    examples = {arm: own["train"]["examples"] for arm, own in plan["arms"].items() if "examples" in own["train"]}
    rows, classes = int(plan["task"]["rows"].get("train", 0)), len(plan["task"].get("labels") or ())
    return shared_samples(examples, rows, classes) if classes else ()


def make_header(results: Results) -> Header:
    plan = results.plan
    stated = results.registration.compare["margin"]
    revision = plan["model"].get("revision")
    return Header(
        study=results.study,
        task=str(plan["task"]["name"]),
        task_source=str(plan["task"]["source"]),
        rows=dict(plan["task"]["rows"]),
        used={split: _used(plan, split) for split in USED},
        model=_models(plan)
        or str(plan["model"]["name"]) + (f"@{revision}" if revision and "@" not in plan["model"]["name"] else ""),
        model_identity=str(plan["model"]["identity"]),
        metric=results.metric,
        metric_title=title_of(results.metric),
        seeds=tuple(plan["seeds"]),
        order=str(plan["order"]),
        reference=results.reference,
        confidence=results.confidence,
        margin=results.margin,
        stated_margin=None if stated is None else str(stated),
        plan=str(plan["plan"]),
        fairtune=str(plan["fairtune"]),
        protocol=int(plan["protocol"]),
        statuses=dict(Counter(run.status for run in results.runs)),
        family=family_size(results),
        simple_family=simple_family_size(results),
        fixed_before=results.registration.fixed_before,
        text=_text_facts(plan) if results.kind == "language_model" else None,
        from_scratch=plan["model"].get("preset") is not None,
        samples=_samples(plan),
        hidden=tuple(arm for arm in results.whole.arms if arm not in plan["arms"]),
        target=target_of(plan),
    )


def _models(plan: dict[str, Any]) -> str | None:
    """The models of all arms, where they are not all the study's."""
    names = dict.fromkeys(arm["train"].get("model") for arm in plan["arms"].values())
    return None if None in names else ", ".join(map(str, names))


def _text_facts(plan: dict[str, Any]) -> TextFacts:
    tokenizer = plan.get("tokenizer") or {"name": plan["model"]["name"], "vocabulary": plan["model"].get("vocabulary")}
    blocks = {arm["train"].get("max_length") for arm in plan["arms"].values()}
    return TextFacts(
        tokenizer=str(tokenizer["name"]),
        vocabulary=tokenizer.get("vocabulary"),
        counts=dict(plan["task"].get("counts") or {}),
        blocks=tuple(sorted(block for block in blocks if isinstance(block, int))),
        target_loss=plan["compare"].get("target_loss"),
    )


def arm_rows(results: Results) -> tuple[ArmRow, ...]:
    return tuple(_arm_row(results, arm) for arm in results.arms)


def left_out(results: Results) -> tuple[tuple[Versus, str | None], ...]:
    """Arms of several methods against those that lack one of them, with that method."""
    return tuple(
        (versus_of(results, c), left_out_method(results.methods(c.arm), results.methods(c.reference)))
        for c in results.left_out
    )


def _arm_row(results: Results, arm: str) -> ArmRow:
    finished, comparison, card = results.finished(arm), results.comparison(arm), _card(results, arm)
    raw = next((c for c in results.raw_differences if c.arm == arm), None)
    shared = shared_seeds(results, comparison)
    text = results.kind == "language_model"
    of_kind = metrics_of_kind(results.kind)
    shown = [name for name in of_kind if METRICS[name].from_scores is None or name in results.registration.beside]
    classes = 0 if text else len(results.plan["task"]["labels"])
    known = [n for n in shown if (text or METRICS[n].fits(classes)) and all(n in run.metrics for run in finished)]
    parameters = finished[0].result.get("parameters") if finished else None
    memory = [found for run in finished if (found := run.result.get("memory")) is not None]
    clocked = results.clocked(arm)
    steps = [found for run in clocked if (found := run.result.get("step_seconds")) is not None]
    planned, learner, reached = results.plan["arms"][arm], results.learner(arm), results.reached(arm)
    best_loss, final_loss = (None, None) if text else results.validation_losses(arm, shared)
    return ArmRow(
        arm=arm,
        methods=tuple(_method(use, planned.get("explained", {})) for use in planned["methods"]),
        planned=sum(run.arm == arm for run in results.runs),
        failed=sum(run.arm == arm and run.status == "failed" for run in results.runs),
        summaries={name: results.summary(arm, name, seeds=shared) for name in dict.fromkeys([results.metric, *known])},
        final=results.summary(arm, which="final", seeds=shared) if text else None,
        steps_to_target=results.steps_to_target(arm),
        tokens_per_second=results.tokens_per_second(arm) if text else None,
        scores={run.seed: run.metrics.get(results.metric, math.nan) for run in finished},
        versus=versus_of(results, comparison) if comparison else None,
        raw=versus_of(results, raw) if raw else None,
        timed=results.timing.arms.get(arm) if results.timing else None,
        step_seconds=spread_of(found["median"] for found in steps),
        seconds=_seconds(clocked),
        trainable_share=results.trainable_share(arm),
        parameters=int(parameters["total"]) if parameters else None,
        trainable=int(parameters["trainable"]) if parameters else None,
        frozen=int(parameters["frozen"]) if parameters else None,
        flops_per_token=card.flops_per_token if card else None,
        saved_bytes=card.saved_bytes if card else None,
        peak_memory=spread_of(found["peak_bytes"] for found in memory),
        memory_kind=str(memory[0]["kind"]) if memory else None,
        learner=learner.name if learner else None,
        simple=learner is not None and not learner.trained,
        best_loss=best_loss,
        final_loss=final_loss,
        epochs_to_target=None
        if reached is None
        else {seed: one.epochs if one else None for seed, one in reached.items()},
    )


def versus_of(results: Results, found: Comparison) -> Versus:
    """A comparison as sections show it."""
    ours, theirs = results.chosen_settings(found.arm), results.chosen_settings(found.reference)
    timed = results.timing.between(found.arm, found.reference) if results.timing else None
    change, untold = _time_change(results, found, timed)
    mean, base = found.means
    low, high = found.alone
    family_low, family_high = found.family
    expected = bound = None
    if found.role != SIMPLE:  # else they have no steps to compare
        expected = expected_ratio(results.step_factor(found.arm), results.step_factor(found.reference), ours, theirs)
    if expected is None or expected == 1:  # the optimizer's share makes more passes cheaper than their number
        bound = lowest_ratio(_flops(results, found.arm), _flops(results, found.reference), ours, theirs)
    return Versus(
        arm=found.arm,
        reference=found.reference,
        n=found.found.n,
        difference=found.difference,
        low=low,
        high=high,
        base=base if math.isfinite(base) else None,
        margin=found.margin,
        p=found.verdict.p,
        word=found.verdict.word,
        note=found.verdict.note,
        confounds=tuple(Confound(name, _setting(name, ours), _setting(name, theirs)) for name in found.confounds),
        timed=timed,
        expected=expected,
        bound=bound if timed is None or timed.bound is None else timed.bound,
        time_change=change,
        untold=untold,
        family_low=family_low,
        family_high=family_high,
        mean=mean if math.isfinite(mean) else None,
        alone_p=found.found.p,
        role=found.role,
        about=found.about,
        seed_share=found.seed_share,
        improvement=found.improvement,
        needed=found.verdict.needed,
        missing=found.missing,
        text=comparison_text(frame_of(results), found),
    )


def shared_seeds(results: Results, found: Comparison | None) -> set[int] | None:
    """Seeds of a comparison, so that means and differences which stand together are of the same runs; None is all."""
    if found is None or not found.found.n:
        return None
    return {run.seed for run in results.finished(found.arm)} & {run.seed for run in results.finished(found.reference)}


def _setting(name: str, train: dict[str, Any]) -> str:
    return "the model's own" if name == "attention" and train[name] is None else setting(train[name])


def _card(results: Results, arm: str) -> CardSummary | None:
    return read_card(results.finished(arm))


def _time_change(results: Results, found: Comparison, timed: StepRatio | None) -> tuple[float | None, str]:
    """The clear change of a step's time as a share, or why it cannot be told."""
    if timed is None or results.timing is None:
        return None, UNTIMED
    if not results.timing.trusted:
        return None, FAILED_AA
    if timed.implausible:
        return None, IMPLAUSIBLE
    times = results.timing.arms
    same = same_work(results.chosen_settings(found.arm), results.chosen_settings(found.reference))
    if not same or not times[found.arm].does_as(times[found.reference]):
        return None, OTHER_WORK
    primary = results.timing.ratios.get(found.arm)
    change = (primary if primary is not None and primary.other == found.reference else timed).change
    return change, "" if change is not None else LOOSE


def _flops(results: Results, arm: str) -> float | None:
    card = _card(results, arm)
    return card.flops_per_token if card else None


def _seconds(finished: list[LedgerRun]) -> dict[str, RunSpread]:
    spreads = {name: spread_of(run.result["seconds"].get(name) for run in finished) for name in PURPOSES}
    return {name: spread for name, spread in spreads.items() if spread is not None}


def _method(use: Any, explained: Mapping[str, str]) -> str:
    """A method with its settings in a line, and what they mean: focal(gamma=2, alpha=0.25; alpha: no 0.75, yes 0.25)."""
    if not isinstance(use, dict):
        return str(use)
    return ", ".join(
        f"{name}({', '.join(f'{key}={setting(value)}' for key, value in (fields or {}).items())}"
        f"{f'; {explained[name]}' if name in explained else ''})"
        for name, fields in use.items()
    )
