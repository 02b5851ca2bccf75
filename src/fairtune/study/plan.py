"""The plan: a study expanded into runs, in the order they will happen, hashed before the first of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fairtune.core.cautions import Caution
from fairtune.core.plugin_files import Plugin
from fairtune.core.plugins import plugin_of
from fairtune.core.version import __version__
from fairtune.methods.registry import method_plugin
from fairtune.models.attention_layouts import registered_layouts
from fairtune.models.sources import ModelSource
from fairtune.models.tokenizers import TokenizerSource
from fairtune.settings.few_labels import SharedSample, is_resampled, shared_samples
from fairtune.settings.learners import is_simple
from fairtune.settings.sections import UNUSED
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.added_arms import arm_line, copy_seeds, missing_controls, with_controls, with_copy
from fairtune.study.audit import (
    ArmSettings,
    Difference,
    arm_settings,
    find_controls,
    find_differences,
    find_primaries,
)
from fairtune.study.cautions import find_cautions, require_allowed
from fairtune.study.inputs import PlanInputs, find_inputs
from fairtune.study.matched_controls import MatchedControls, add_matched_controls
from fairtune.study.run_spec import RunSettings, RunSpec, hash_of
from fairtune.study.schema import Study
from fairtune.study.trials import Trial, Tuned, tuned_study
from fairtune.tasks import TaskFacts

PROTOCOL = 5
"""Raised whenever the same settings would train differently; part of every signature.

5: the network is transformers' own code; under 4, dropout, GELU, embedding gradients, the last layer and the loss of language
models were computed by code of our own."""


LISTED = {"position", "block", "arm", "seed", "settings", "key", "signature", "steps"}
"""What a study's plan says of each run; the rest is the same for all, and stands in each run's `plan.json`."""


@dataclass(frozen=True)
class Plan:
    """A study as it will be run.

    Args:
        notes: what a reader of its results must be told.
        lengths: what `max_length` became where it was not a number, and why.
        models: what each arm starts from.
        arms: the settings by which it is decided what differs between them, and which is whose control.
        controls: of each arm, the arm that it is fairest to compare with; None where there is none.
        primaries: of each arm, the arm that it is compared with: its control, else the reference; None for the reference itself.
        cautions: what to know before the first run is believed; refusals only where they were overruled.
        copy: the arm that is the reference once more, with other random numbers.
        added: the controls that were added, each with its line of a study file.
        tokenizer: None where it is the checkpoint's own and the task is to classify.
        plugins: that a method or the task of some run comes from.
        tuned: how settings were chosen; None where they are as given, or still to be chosen.
        trials: what each arm tries, in a plan of trials.
        matched: of each arm whose choice is not its partner's, the partner with the arm's settings.
    """

    study: Study
    task: TaskFacts
    models: dict[str, ModelSource]
    runs: tuple[RunSpec, ...]
    arms: dict[str, ArmSettings]
    differences: tuple[Difference, ...]
    controls: dict[str, str | None]
    hash: str
    notes: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    tokenizer: TokenizerSource | None = None
    plugins: tuple[Plugin, ...] = ()
    primaries: dict[str, str | None] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    copy: str | None = None
    added: dict[str, str] = field(default_factory=dict)
    tuned: Tuned | None = None
    trials: dict[str, Trial] = field(default_factory=dict)
    matched: dict[str, str] = field(default_factory=dict)

    @property
    def model(self) -> ModelSource:
        """The model of the arm that the others are compared to; nearly always that of all."""
        return self.models[self.study.compare.to]

    @property
    def samples(self) -> tuple[SharedSample, ...]:
        """The training samples that its runs share; none where all train on everything."""
        if self.task.kind == TEXT:
            return ()
        examples = {arm: self.study.settings(arm).examples for arm in self.study.arms}
        return shared_samples(examples, self.task.rows["train"], len(self.task.labels))

    @property
    def trained(self) -> list[str]:
        """The arms whose runs take optimizer steps: all but those that are fitted at once."""
        return [arm for arm in self.study.arms if not is_simple({"learner": self.arms[arm].learner})]

    def as_json(self) -> dict[str, Any]:
        """The plan as data: what `fairtune plan --json` prints and the ledger keeps."""
        return {
            "fairtune": __version__,
            "protocol": PROTOCOL,
            "plan": self.hash,
            "study": self.study.study,
            "task": asdict(self.task),
            "model": self.model.as_json(),
            "tokenizer": self.tokenizer.as_json() if self.tokenizer else None,
            "order": self.study.order,
            "seeds": list(self.study.seeds),
            "arms": {arm: self._arm_json(arm) for arm in self.study.arms},
            "compare": _compared(self.study),
            **({"claims": self._claims_json()} if self.study.claims and not self.trials else {}),
            **({"author_notes": list(self.study.notes)} if self.study.notes and not self.trials else {}),
            "execution": self.study.execution.model_dump(mode="json"),
            **({"time": self.study.timing.model_dump(mode="json")} if self.study.timing else {}),
            "runs": [run.model_dump(mode="json", exclude_unset=True, include=LISTED) for run in self.runs],
            "differences": [{**asdict(d), "text": str(d)} for d in self.differences],
            "notes": list(self.notes),
            "cautions": [caution.as_json() for caution in self.cautions],
            "lengths": list(self.lengths),
            **({"added": dict(self.added)} if self.added else {}),
            **({"tuning": self._tuning_json()} if self.tuned else {}),
            **({"plugins": [plugin.as_json() for plugin in self.plugins]} if self.plugins else {}),
        }

    def _claims_json(self) -> list[dict[str, Any]]:
        """What is claimed; no part of the hash, since it changes nothing that is run or compared."""
        return [claim.model_dump(mode="json", exclude_defaults=True) for claim in self.study.claims]

    def _matches(self, arm: str) -> list[str]:
        """The arms that an added matched control is for."""
        return [own for own, control in self.matched.items() if control == arm and arm in self.added]

    def _tuning_json(self) -> dict[str, Any]:
        assert self.tuned is not None, "asked only where it was tuned"
        assert self.study.tune is not None, "asked only where it was tuned"
        return self.tuned.as_json(self.study.tune)

    def explained(self, arm: str) -> dict[str, str]:
        """What the settings of an arm's methods mean for the task, by method, where they do not say it themselves."""
        found = {use.name: use.config.explained(self.task.labels) for use in self.study.methods(arm)}
        return {name: phrase for name, phrase in found.items() if phrase}

    def _arm_json(self, arm: str) -> dict[str, Any]:
        uses, learner = self.study.methods(arm), self.study.learner(arm)
        return {
            "methods": [use.as_json() for use in uses],
            **({"explained": explained} if (explained := self.explained(arm)) else {}),
            **({"learner": self.arms[arm].learner} if self.arms[arm].learner else {}),
            "train": self.arms[arm].values,
            **({"trial": self.trials[arm].as_json()} if arm in self.trials else {}),
            **({"matched": self.matched[arm]} if arm in self.matched else {}),
            **({"matches": self._matches(arm)} if self._matches(arm) else {}),
            "control": self.controls[arm],
            "primary": self.primaries[arm],
            **({"copy_of": self.study.compare.to} if arm == self.copy else {}),
            "idle": bool(uses) and all(use.config.idle for use in uses),
            "step_factor": math.prod(
                (use.config.step_factor for use in uses), start=learner.step_factor if learner else 1.0
            ),
        }


def make_plan(study: Study, force: bool = False, tuned: Tuned | None = None) -> Plan:
    """Expand a study. Reads the task's data and finds the model, so that what is wrong with them is known before run 1.

    Args:
        force: plan it although it would be refused; its cautions then say so.
        tuned: the settings that trials chose, of a study that has `tune`; without, its runs have them as given.

    Raises:
        RefusedPlan: its results would be worthless.
        FairtuneError: its data or its model cannot be used.
    """
    missing = missing_controls(study)
    lines = {arm: arm_line(study, arm, name) for arm, name in missing.items()}
    added = {missing[arm]: line for arm, line in lines.items()} if study.controls else {}
    study = with_controls(study, missing if study.controls else {})
    if tuned is not None:
        study = tuned_study(study, tuned.choices)
    study, copy = with_copy(study)
    inputs = find_inputs(study)
    study, task, reference = inputs.study, inputs.task, inputs.study.compare.to
    arms = arm_settings(study, inputs.models)
    controls = {arm: reference if arm == copy else found for arm, found in find_controls(arms, reference).items()}
    primaries = find_primaries(controls, reference)
    cautions = require_allowed(find_cautions(inputs, arms, primaries, lines, copy), force)
    differences = find_differences(arms, reference, lines)
    matched = add_matched_controls(study, primaries, copy) if tuned is not None else MatchedControls(study)
    for name, partner in matched.partners.items():
        own = {"model": arms[partner].settings["model"]} if "model" in arms[partner].settings else {}
        train = matched.study.settings(name).model_dump(mode="json")
        arms[name] = ArmSettings({**own, **train}, matched.study.methods(name))
        controls[name], primaries[name] = None, reference
        added[name] = arm_line(matched.study, name, name)
    study, origin = matched.study, {arm: matched.partners.get(arm, arm) for arm in matched.study.arms}
    inputs = replace(
        inputs,
        study=study,
        models={arm: inputs.models[origin[arm]] for arm in study.arms},
        examples={arm: inputs.examples[origin[arm]] for arm in study.arms},
    )
    settings = run_settings(inputs, copy)
    chosen = {} if tuned is None or study.tune is None else {"tuning": tuned.plan}
    plan_hash = hash_of(
        {
            "runs": [[arm, seed, found.as_json()] for (arm, seed), found in settings.items()],
            "order": study.order,
            "compare": _compared(study),
            **chosen,
        }
    )
    return Plan(
        study,
        task,
        inputs.models,
        plan_runs(inputs, settings, plan_hash),
        arms,
        differences,
        controls,
        plan_hash,
        inputs.notes,
        inputs.lengths,
        inputs.tokenizer,
        all_plugins(study),
        primaries,
        cautions,
        copy,
        added,
        tuned,
        matched=matched.controls,
    )


def run_settings(inputs: PlanInputs, copy: str | None = None, **more: Any) -> dict[tuple[str, int], RunSettings]:
    """What decides each run, by arm and seed.

    Args:
        more: settings that all of them have besides.
    """
    study = inputs.study
    shared = {arm: _settings(inputs, arm) | more for arm in study.arms}
    others = copy_seeds(study.seeds) if copy else {}
    return {
        (arm, seed): RunSettings(**shared[arm], seed=others[seed] if arm == copy else seed, **_sample(study, arm, seed))
        for arm in study.arms
        for seed in study.seeds
    }


def plan_runs(inputs: PlanInputs, found: Mapping[tuple[str, int], RunSettings], plan_hash: str) -> tuple[RunSpec, ...]:
    """The runs in the order in which they will happen, from what decides each."""
    study, task = inputs.study, inputs.task
    shared = {
        "plan": plan_hash,
        "study": study.study,
        "data": study.data(),
        "tokenizer": inputs.tokenizer,
        "prompts": study.prompts,
        "attention": registered_layouts(),
        "plugins": all_plugins(study),
        "checkpoint_every": study.execution.checkpoint_every,
        "save_model": study.execution.save_model,
    }
    steps = {arm: inputs.steps(arm) for arm in study.arms}
    runs = []
    for position, (block, arm, seed) in enumerate(_ordered(study, plan_hash)):
        settings = found[arm, seed]
        key = hash_of(settings.as_json())
        labels = "".join(f"|plugin:{plugin.label}" for plugin in _plugins(study, arm))
        signature = (
            f"fairtune:{__version__}|protocol:{PROTOCOL}|task:{task.name}@{task.fingerprint[:8]}"
            f"{_learned(inputs, arm)}{labels}|arm:{arm}|seed:{seed}|run:{key}|plan:{plan_hash}"
        )
        runs.append(
            RunSpec(
                **shared,
                position=position,
                block=block,
                arm=arm,
                seed=seed,
                settings=settings,
                key=key,
                signature=signature,
                steps=steps[arm],
                model=inputs.models[arm],
            )
        )
    return tuple(runs)


def all_plugins(study: Study) -> tuple[Plugin, ...]:
    """Those that a method or the task of some run comes from."""
    return tuple(dict.fromkeys(plugin for arm in study.arms for plugin in _plugins(study, arm)))


def _compared(study: Study) -> dict[str, Any]:
    """What verdicts compare; what is not stated is left out, as in plans from before it could be."""
    found = study.compare.model_dump(mode="json")
    usual: dict[str, Any] = {"target_loss": None, "target": None, "also": [], "threshold": "half"}
    return {name: value for name, value in found.items() if name not in usual or value != usual[name]}


def _settings(inputs: PlanInputs, arm: str) -> dict[str, Any]:
    """What decides the runs of an arm besides the seed."""
    study, task, model, tokenizer = inputs.study, inputs.task, inputs.models[arm], inputs.tokenizer
    train, learner, uses_model = study.settings(arm), study.learner(arm), study.uses_model(arm)
    unused = UNUSED[task.kind] | train.unstated
    if learner is not None:
        unused |= {name for name in type(train).model_fields if not learner.uses(name)}
    kind = {"kind": TEXT} if task.kind == TEXT else {}
    settings = {
        "protocol": PROTOCOL,
        "task": {"name": task.name, "fingerprint": task.fingerprint, "metric": task.metric, **kind},
        **({"model": {"name": model.name, "identity": model.identity}} if uses_model else {}),
        "train": train.model_dump(mode="json", exclude=unused),
        "methods": [use.as_json() for use in study.methods(arm)],
        **({"learner": {**learner.identity(), **_pairs(study, arm)}} if learner else {}),
    }
    if tokenizer is not None and uses_model:
        settings["tokenizer"] = {"name": tokenizer.name, "identity": tokenizer.identity}
    if plugins := _plugins(study, arm):
        settings["plugins"] = [plugin.identity() for plugin in plugins]
    return settings


def _sample(study: Study, arm: str, seed: int) -> dict[str, int]:
    """The seed that draws the training sample, where each has its own: the study's, so that all arms share it, a copy too."""
    return {"sample": seed} if is_resampled(study.settings(arm).examples) else {}


def _pairs(study: Study, arm: str) -> dict[str, int]:
    each = study.pairs(arm)
    return {} if each is None else {"pairs": each}


def _learned(inputs: PlanInputs, arm: str) -> str:
    """What an arm learns with, as signatures have it."""
    learner, model, tokenizer = inputs.study.learner(arm), inputs.models[arm], inputs.tokenizer
    found = f"|learner:{learner.name}.{learner.version}" if learner else ""
    if inputs.study.uses_model(arm):
        found += f"|model:{model.name}@{model.identity[:8]}" + (
            f"|tokenizer:{tokenizer.identity[:8]}" if tokenizer else ""
        )
    return found


def _plugins(study: Study, arm: str) -> list[Plugin]:
    """The plug-ins that an arm's methods and the task come from: other code is another run."""
    tasks = [name for name in (study.task, study.train_on) if isinstance(name, str)]
    found = [task_plugin(name) for name in tasks] + [method_plugin(use.name) for use in study.methods(arm)]
    return list(dict.fromkeys(plugin for plugin in found if plugin is not None))


def task_plugin(name: str) -> Plugin | None:
    """The plug-in that a task comes from; `name/part` is a part of the task `name`."""
    return plugin_of("task", name) or plugin_of("task", name.partition("/")[0])


def _ordered(study: Study, plan_hash: str) -> Iterable[tuple[int, str, int]]:
    arms, seeds = list(study.arms), list(enumerate(study.seeds))
    if study.order == "sequential":
        return [(block, arm, seed) for arm in arms for block, seed in seeds]
    if study.order == "random":
        runs = [(block, arm, seed) for block, seed in seeds for arm in arms]
        random.Random(plan_hash).shuffle(runs)
        return runs
    return [(block, arm, seed) for block, seed in seeds for arm in (arms if block % 2 == 0 else reversed(arms))]
