"""`fairtune plan`: what will run, in which order, at what cost, and what differs between the arms."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from fairtune.cli.command import (
    AllowPlugins,
    Arms,
    AsJson,
    Force,
    Overrides,
    Profile,
    Runs,
    StudyFile,
    choice_text,
    console,
    print_json,
    read_arms,
    reading_study,
    report_errors,
)
from fairtune.core.cautions import Grade
from fairtune.core.errors import FairtuneError, one_of
from fairtune.core.numbers import as_percent, plural
from fairtune.methods.config import MethodUse
from fairtune.monitor.stage_view import show_stages
from fairtune.settings.claims import MAP, RANK, SHARE, SPEED, SPREAD, Claim
from fairtune.study.compute import plan_compute
from fairtune.study.plan import Plan, TuningCost, find_tuning_cost, make_plan
from fairtune.study.study_file import load_checked
from fairtune.tasks import TaskFacts

Estimate = Annotated[
    bool, typer.Option("--estimate", help="Measure a few steps of each arm, and say how long all will take.")
]
AddControls = Annotated[
    bool,
    typer.Option(
        "--add-controls",
        help="Add the controls that are missing, as `controls: true` does, and print their lines for the file.",
    ),
]
TITLES: dict[Grade, str] = {"refusal": "Refused, but forced", "warning": "Warning", "note": "Note"}


@report_errors
@show_stages(lines=False)
def plan(
    file: StudyFile,
    overrides: Overrides = None,
    profile: Profile = None,
    arms: Arms = None,
    add_controls: AddControls = False,
    force: Force = False,
    estimate: Estimate = False,
    runs: Runs = Path("runs"),
    allow_plugins: AllowPlugins = False,
    as_json: AsJson = False,
) -> None:
    """Show the runs of a study without running them, and what they will be able to show."""
    with reading_study(allow_plugins):
        study = load_checked(file, overrides or [], profile)
    found = make_plan(study.model_copy(update={"controls": study.controls or add_controls}), force)
    chosen = found.choose(read_arms(arms))
    costs = None
    if estimate:
        from fairtune.execution.cost_estimate import estimate_costs

        costs = estimate_costs(found, chosen)
    power, tuning = _power(found, runs), find_tuning_cost(found)
    compute = plan_compute(found, tuning)
    if as_json:
        answer = {**found.as_json(), "power": power, "estimate": costs.as_json() if costs else None}
        answer["compute"] = compute.as_json() if compute else None
        tuned = {"tuning_cost": asdict(tuning)} if tuning else {}
        print_json({**answer, **tuned, **({"chosen": chosen} if arms is not None else {})})
        return
    _show(found, chosen)
    if tuning:
        _tell("Tuning", _tuning_text(found, tuning))
    if power:
        _tell("Power", power)
    if compute:
        _tell("Compute", str(compute))
    if costs:
        _tell("Cost", f"measured on {costs.steps} steps of each arm")
        for arm in chosen:
            if arm in costs.seconds_per_run:
                each = f"{costs.seconds_per_run[arm]:.0f} s per run, {costs.seconds_per_step[arm]:.3f} s per step"
            else:
                each = "not measured; seconds, besides one pass of an encoder over all examples"
            console().print(f"  {arm}: {each}")
        workers = plural(costs.workers, "worker", "workers side by side")
        count = sum(run.arm in chosen for run in found.runs)
        console().print(f"  all {count} runs by {workers}: about {costs.total_seconds / 60:.1f} minutes")
        if tuning:
            spent = sum(steps * costs.seconds_per_step.get(arm, 0) for arm, steps in tuning.steps.items())
            minutes = f"{spent / costs.workers / 60:.1f}"
            console().print(
                f"  the steps of all {tuning.runs} runs of trials before them: about {minutes} minutes more"
            )
    else:
        console().print("\nHow long will it take? `fairtune plan --estimate` measures a few steps.")


def _tell(title: str, text: object) -> None:
    console().print(Text.assemble("\n", (title, "bold"), f": {text}"), soft_wrap=True)


def _tuning_text(plan: Plan, cost: TuningCost) -> str:
    """What happens before the runs that are reported, and what it costs."""
    tune = plan.study.tune
    assert tune is not None, "only a study that is tuned has such costs"
    counts = sorted(set(cost.trials.values()))
    trials = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    reported, spent = sum(run.steps for run in plan.runs), sum(cost.steps.values())
    share = as_percent(spent / (spent + reported))
    borrowed = " Borrowing adds at most one trial per rival." if tune.borrow else ""
    return (
        f"before these runs every trained arm tries {trials} {'setting' if trials == '1' else 'settings'} "
        f"({', '.join(tune.space)}) with {plural(len(tune.seeds), 'seed')} of their own, "
        f"{cost.runs} runs of {spent:,} optimizer steps, {share} of all; the best on validation replace those above.{borrowed} "
        "`--set tune=null` takes them as given."
    )


def _power(plan: Plan, runs: Path) -> str | None:
    """What the plan can show, from runs of the same study where there are some."""
    from fairtune.analysis.arm_pairs import SIMPLE
    from fairtune.analysis.plan_power import describe_plan

    known = []
    if (runs / plan.study.study / "study.json").is_file():
        from fairtune.analysis.results import load_results

        with contextlib.suppress(FairtuneError):  # nothing on record that can be read
            compared = load_results(runs, plan.study.study).comparisons
            known = [
                c.found for c in compared if c.role != SIMPLE
            ]  # what draws no random numbers says nothing of their luck
    return describe_plan(plan.as_json(), known)


def _show(plan: Plan, chosen: Sequence[str]) -> None:
    out, task = console(), plan.task
    rows = ", ".join(f"{name} {_size(task, name)}" for name in task.rows)
    out.print(Text.assemble((plan.study.study, "bold"), f"  plan {plan.hash}"))
    out.print(f"  task   {task.name}: {rows}; selected by {task.metric} on validation, reported on test")
    if plan.study.compare.also:
        out.print(f"  beside verdicts by {one_of(plan.study.compare.also)} too, each corrected for itself")
    if plan.study.compare.threshold != "half":
        out.print("  line   picked for each run on its own validation split")
    facts = [("model", f"{m.name} ({m.identity[:12]})") for m in {m.identity: m for m in plan.models.values()}.values()]
    if (found := plan.tokenizer) is not None:
        facts.append(("tokens", f"{found.name} ({found.identity[:12]}), {found.vocabulary:,} of them"))
    facts += [("plugin", f"{plugin.label} ({plugin.origin})") for plugin in plan.plugins]
    facts += [("sample", sample.text) for sample in plan.samples]
    facts += [("length", line) for line in plan.lengths]
    steps = sum(run.steps for run in plan.runs)
    facts.append(("order", f"{plan.study.order}, {len(plan.runs)} runs, {steps:,} optimizer steps\n"))
    for word, text in facts:
        out.print(f"  {word:6} {text}", soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("run", "block", "arm", "seed", "steps", "lr", "methods"):
        table.add_column(title, justify="right" if title in ("run", "block", "seed", "steps", "lr") else "left")
    for run in (run for run in plan.runs if run.arm in chosen):
        methods = "; ".join(map(_method_text, plan.study.methods(run.arm))) or "-"
        learner = plan.study.learner(run.arm)
        tuned = plan.study.tune is not None and plan.tuned is None and "lr" in plan.study.tune.space
        lr = "tuned" if tuned else f"{plan.study.settings(run.arm).lr:g}"
        lr = "-" if learner is not None and not learner.uses("lr") else lr
        methods = methods if learner is None else f"simple baseline: {learner.short}"
        table.add_row(str(run.position + 1), str(run.block + 1), run.arm, str(run.seed), str(run.steps), lr, methods)
    out.print(table)
    phrases: dict[str, list[str]] = {}
    for arm in chosen:
        for name, phrase in plan.explained(arm).items():
            phrases.setdefault(f"{name} {phrase}", []).append(arm)
    for phrase, arms in phrases.items():
        out.print(Text(f"  {one_of(arms)}: {phrase}"), soft_wrap=True)
    if some := choice_text(plan, chosen):
        _tell("Shown", some)
    _tell("Audit", "differences between arms that are not methods")
    for difference in plan.differences or ("none",):
        out.print(Text(f"  {difference}"), soft_wrap=True)
    if plan.study.claims:
        _tell("Claims", "answered at the top of the report")
        for claim in plan.study.claims:
            out.print(Text(f"  {claim}: {deciding_comparison(claim, plan)}"), soft_wrap=True)
    for note in plan.notes:
        _tell("Warning", note)
    for caution in plan.cautions:
        _tell(TITLES[caution.grade], caution)
    for words in plan.study.notes:
        _tell("Author's note", words)
    if plan.added:
        _tell("Added controls", "for the file, under `arms`:")
        for line in plan.added.values():
            out.print(Text(f"  {line}"), soft_wrap=True)


def deciding_comparison(claim: Claim, plan: Plan) -> str:
    """Which comparison answers a claim, in words that follow its text and a colon."""
    if claim.kind == SHARE:
        return "counted when a run of it starts"
    if claim.kind == MAP:
        return "read from the map at the end of its runs"
    if claim.kind in (SPEED, SPREAD):
        other = claim.than or claim.steadier_than or plan.primaries.get(claim.arm or "") or plan.study.compare.to
        later = "timed by `fairtune time`; `time: true` makes it part of the study"
        return f"decided by {claim.arm} against {other}, {'timed when the runs are finished' if plan.study.time else later}"
    pairs = pairwise(claim.rank or ()) if claim.kind == RANK else [(str(claim.arm), str(claim.other))]
    return "decided by " + "; ".join(_pair_text(*pair, plan) for pair in pairs)


def _pair_text(arm: str, other: str, plan: Plan) -> str:
    for one, base in ((arm, other), (other, arm)):
        primary = plan.primaries.get(one)
        if primary is not None and primary == base:
            return f"{one} against {base}, as planned"
        if primary is not None and base == plan.study.compare.to:
            return f"{one} against {primary}, which has its settings; {base} has not, and no verdict is made with it"
    return f"{arm} against {other}, which the plan does not compare: corrected with the others, if they differ in methods alone"


def _size(task: TaskFacts, split: str) -> str:
    if split not in task.counts:
        return f"{task.rows[split]:,}"
    return f"{task.counts[split]['tokens']:,} tokens in {task.rows[split]:,} documents"


def _method_text(use: MethodUse) -> str:
    """A method with the settings that the study gives it."""
    given = use.config.model_dump(mode="json", exclude_unset=True)
    return f"{use.name}({', '.join(f'{k}={v}' for k, v in given.items())})"
