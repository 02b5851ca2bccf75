"""What can be wrong between the fields of a study, as far as the file alone tells; `arm_checks.py` has what is wrong inside arms.

A setting that would be ignored is refused, so that no one believes that it did something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from fairtune.core.errors import ModelError, nearest, one_of, shown
from fairtune.methods.config import MethodUse
from fairtune.methods.layerwise_lr import LayerwiseLRConfig
from fairtune.methods.registry import parse_method_use, registered
from fairtune.models.presets import parse_preset
from fairtune.models.tokenizers import NO_TOKENIZER
from fairtune.settings.claims import POINTS, Claim, read_amount
from fairtune.settings.file_task import FileTask
from fairtune.settings.metrics import METRICS, metrics_of_kind, title_of
from fairtune.settings.sections import UNUSED, Train
from fairtune.settings.tune import DATA, FIXED, Range, Tune, Values, space_size
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.settings.values import MOST_RUNS
from fairtune.study.controls import is_tuned, missing_controls
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.catalogue import task_names
from fairtune.tasks.corpora import corpus_names, is_text
from fairtune.tasks.definitions import ALIASES

Fault = tuple[Path, str]
"""Where something is wrong, and what."""
KINDS = {"classify": "tasks that classify", TEXT: "language models"}
CLASSIFY = "this is for tasks that classify; text for language models is taken as it is"
REFUSED: dict[str, dict[Path, str]] = {
    TEXT: {
        ("train_on",): CLASSIFY,
        ("dedupe",): CLASSIFY,
        ("allow_contamination",): CLASSIFY,
        ("compare", "target"): "this is for tasks that classify; use target_loss, a validation loss, or remove it",
        ("compare", "threshold"): "a language model draws no line between classes; remove it",
        ("train", "examples"): "text for language models is counted in tokens, not in examples; use tokens, or leave it out",
        ("train", "eval_examples"): "a language model is validated and tested on all of the held-out text; leave it out",
        ("train", "attention"): "this is for classifiers; a language model is always causal, or it would see what it predicts",
    },
    "classify": {
        ("prompts",): "only language models continue a text; remove it",
        ("compare", "target_loss"): "this is for language models; use target, a validation score, or remove it",
        ("train", "tokens"): "this counts the training text of language models; for classification use examples",
    },
}  # fmt: skip
"""Settings that a kind of task has no use for."""


def study_problems(study: Study) -> Iterator[Fault]:
    """What is wrong with a study whose fields are each right by themselves."""
    known = not isinstance(study.task, str) or study.task in {*corpus_names(), *task_names(), *ALIASES}
    kind = TEXT if is_text(study.task) else "classify"
    if (runs := len(study.arms) * len(study.seeds)) > MOST_RUNS:
        yield ("seeds",), f"{runs:,} runs; a study has at most {MOST_RUNS:,}; use fewer"
    if known:  # what suits an unknown task depends on what its name was meant to be
        yield from _kind_settings(study, kind)
    yield from _preset(study)
    if study.tune is not None:
        yield from _tuning(study, study.tune, kind)
    for place, claim in enumerate(study.claims):
        for field, reason in _claim_problems(study, claim, kind if known else None):
            yield ("claims", place, *field), reason


def _kind_settings(study: Study, kind: str) -> Iterator[Fault]:
    """Settings and metrics that its kind of task has no use for."""
    for path, reason in REFUSED[kind].items():
        for place in (path, *(("arms", arm, path[1]) for arm in study.arms if path[0] == "train")):
            value: Any = study
            for part in place:
                value = value.get(part) if isinstance(value, dict) else getattr(value, str(part))
            if value not in (None, False, "half"):
                yield place, reason
    named: dict[Path, str | None] = {("compare", "also", place): name for place, name in enumerate(study.compare.also)}
    named["metric",] = study.metric
    for path, name in named.items():
        if problem := _of_other_kind(name, kind):
            yield path, problem
    files = study.task if isinstance(study.task, FileTask) else None
    if files and study.metric and "metric" in files.model_fields_set and study.metric != files.metric:
        yield ("metric",), f"{study.metric} is given here and {files.metric} in `task`; keep one of them"


def _of_other_kind(metric: str | None, kind: str) -> str:
    if metric is None or METRICS[metric].kind == kind:
        return ""
    other = KINDS[METRICS[metric].kind]
    return f"{metric} is for {other}, which this task is not; use one of {one_of(metrics_of_kind(kind))}"


def _preset(study: Study) -> Iterator[Fault]:
    """A preset that is not known, that has no tokenizer, or that is too short: no text has to be read to see that."""
    try:
        preset = parse_preset(study.model)
    except ModelError as error:
        place = ("model",) if isinstance(study.model, str) else ("model", "preset")
        yield place, str(error).removeprefix("model: ").removesuffix(".")
        return
    if preset is None:
        return
    if study.tokenizer is None:
        yield ("model",), NO_TOKENIZER
    stated: dict[Path, Any] = {("train",): study.train, **{("arms", arm): own for arm, own in study.arms.items()}}
    for path, own in stated.items():
        length = own.max_length if "max_length" in own.model_fields_set else None
        if isinstance(length, int) and length > preset["context"]:
            reason = f"{length} tokens are more than the {preset['context']} positions of the model"
            yield (*path, "max_length"), f"{reason}; lower it, or set the preset's `context`"


def _claim_problems(study: Study, claim: Claim, kind: str | None) -> Iterator[Fault]:
    """A claim about arms that are not there, without a margin that it needs, or in a unit that its metric does not have."""
    arms = list(study.arms)
    if study.controls and study.compare.to in arms:
        arms += (name for name, _ in missing_controls(study).values())
    fields = ("arm", "better_than", "worse_than", "as_good_as", "than", "steadier_than")
    named: dict[Path, str | None] = {(field,): getattr(claim, field) for field in fields}
    named |= {("rank", number): arm for number, arm in enumerate(claim.rank or ())}
    for where, arm in named.items():
        if arm is not None and arm not in arms:
            yield where, f"no arm is called {shown(arm)}; arms: {one_of(arms)}.{nearest(arm, arms)}"
    if claim.as_good_as is not None and claim.within is None and study.compare.margin is None:
        add = "add `within: 1 points` to the claim, or `compare.margin` to the study"
        yield ("as_good_as",), f"nothing says to within how much: {add}"
    if claim.faster is not None and claim.than is None and claim.arm == study.compare.to:
        reason = f"{claim.arm} is what the others are compared to, so say which it is faster than: add `than`"
        yield ("faster",), reason
    if kind is None:
        return
    if problem := _of_other_kind(claim.metric, kind):
        yield ("metric",), problem
        return
    metric = claim.metric or study.metric or (metrics_of_kind(TEXT)[0] if kind == TEXT else None)
    for name in ("by", "within"):
        amount = getattr(claim, name)
        if amount and metric and METRICS[metric].shown == "plain" and read_amount(amount)[1] == POINTS:
            yield (name,), f"{title_of(metric)} has no points; write a share of the other arm's, such as 5%"


def _tuning(study: Study, tune: Tune, kind: str) -> Iterator[Fault]:
    """A space or a budget that the arms cannot be given, and seeds that are reported too."""
    used = {use.name: use for arm in study.arms for use in study.methods(arm)}
    for name, values in tune.space.items():
        if problem := _space_problem(name, values, kind, used):
            yield ("tune", "space", name), problem
        if name in tune.cheaper:
            yield ("tune", "budget", name), "is in the space too; keep one of the two"
    size = space_size(tune.space)
    if tune.sampler == "grid" and size is None:
        yield ("tune", "sampler"), "a range has no grid; list its values, or use `sampler: random`"
    elif tune.sampler == "grid" and size is not None and size > tune.trials:
        reason = f"the grid has {size:,} points, trials is {tune.trials:,}; raise it, or use `sampler: random`"
        yield ("tune", "trials"), reason
    replaced = "`steps`, which are set too, would replace it; keep one of the two"
    own_steps = any(getattr(arm, "steps", None) is not None for arm in study.arms.values())
    if "epochs" in tune.space and (own_steps or "steps" in {*tune.space, *tune.cheaper}):
        yield ("tune", "space", "epochs"), replaced
    elif "steps" in tune.space and "epochs" in tune.cheaper:
        yield ("tune", "budget", "epochs"), replaced
    # trials may not see more labels than reported runs, and a number per class and a number in all cannot be compared
    wanted = tune.cheaper.get("examples")
    for arm in study.arms if wanted is not None else ():
        own = study.settings(arm).examples
        if own is not None and isinstance(own, int) != isinstance(wanted, int):
            form = "a number" if isinstance(own, int) else "{per_class: N}"
            yield ("tune", "budget", "examples"), f"arm '{arm}' has another form; give {form}, or leave it out"
            break
    if not any(is_tuned(study.learner(arm)) for arm in study.arms):
        yield ("tune",), "no arm is trained, so there is nothing to tune; simple baselines choose for themselves"
    if both := sorted(set(tune.seeds) & set(study.seeds)):
        seeds = f"{'seed' if len(both) == 1 else 'seeds'} {one_of(both[:5])}"
        reason = f"{seeds} would also be reported, and nothing that is reported may choose settings"
        yield ("tune", "seeds"), f"{reason}; name others, or give their number alone, `seeds: {len(tune.seeds)}`"
    for arm in study.arms if "lr" in tune.space else ():
        if any(isinstance(use.config, LayerwiseLRConfig) and use.config.absolute for use in study.methods(arm)):
            reason = "the groups of layerwise_lr state every learning rate, so `tune.space.lr` changes nothing here"
            do = "give `scale` instead of `lr` in a group, or take lr out of the space"
            yield ("arms", arm, "methods"), f"{reason}; {do}"


def _space_problem(name: str, values: Values | Range, kind: str, used: Mapping[str, MethodUse]) -> str:
    method, _, field = name.rpartition(".")
    known = registered()
    if name in DATA:
        return "decides what is learned from, which is the same for all arms; it can stand in `tune.budget`"
    if method and method not in known:
        return f"unknown method '{method}'; allowed: {one_of(known)}.{nearest(method, known)}"
    if method and method not in used:
        return f"no arm of the study has the method '{method}'; methods of its arms: {one_of(used) or 'none'}"
    fields, what = [name for name in Train.model_fields if name not in {*DATA, *FIXED, *UNUSED[kind]}], "unknown field"
    if method:
        fields, what = list(known[method].config_class.model_fields), f"'{method}' has no field '{field}'"
    if field not in fields:
        hint = "" if method else " A method's own field is METHOD.FIELD."
        return f"{what}; allowed: {one_of(fields)}.{hint}{nearest(field, fields)}"
    for value in (values.low, values.high) if isinstance(values, Range) else values:
        try:
            with_fields(used[method], {field: value}) if method else Train.model_validate({name: value})
        except (ValidationError, PydanticCustomError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.message()
            return f"found {shown(value)}, which this field does not take: {reason}"
    return ""


def with_fields(use: MethodUse, fields: Mapping[str, Any]) -> MethodUse:
    """A method with other values in some of its fields."""
    given = use.config.model_dump(mode="json", exclude_unset=True)
    return parse_method_use({use.name: {**given, **fields}})
