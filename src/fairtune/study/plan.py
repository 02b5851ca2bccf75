"""The plan: a study expanded into runs, in the order they will happen, hashed before the first of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fairtune.core import __version__
from fairtune.core.cautions import Caution
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.core.plugins import Plugin, plugin_of
from fairtune.methods.registry import method_plugin
from fairtune.models.attention_layouts import registered_layouts
from fairtune.settings.few_labels import SharedSample, is_resampled, shared_samples
from fairtune.settings.sections import UNUSED
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.cautions import find_cautions
from fairtune.study.controls import ArmSettings, Difference, arm_settings, copy_seeds, find_differences, find_primaries
from fairtune.study.expand import FullStudy, expand, find_inputs
from fairtune.study.run_spec import RunSettings, RunSpec, hash_of
from fairtune.study.schema import Study
from fairtune.study.trials import Trial, Tuned, find_trials, trial_study

PROTOCOL = 5
"""Raised whenever the same settings would train differently; part of every signature.

5: the network is transformers' own code; under 4, dropout, GELU, embedding gradients, the last layer and the loss of language
models were computed by code of our own."""
LISTED = {"position", "block", "arm", "seed", "settings", "key", "signature", "steps"}
"""What a study's plan says of each run; the rest is the same for all, and is in each run's `plan.json`."""


@dataclass(frozen=True, kw_only=True)
class Plan(FullStudy):
    """A study as it will be run.

    Args:
        arms: the settings that decide what differs between arms, and which is whose control.
        controls: of each arm, the arm that it is fairest to compare with; None where there is none.
        primaries: of each arm, the arm that it is compared with: its control, else the reference; None for the reference itself.
        cautions: what to know before the first run is believed; refusals only where they were overruled.
        trials: what each arm tries, in a plan of trials.
    """

    runs: tuple[RunSpec, ...]
    arms: dict[str, ArmSettings]
    controls: dict[str, str | None]
    primaries: dict[str, str | None]
    differences: tuple[Difference, ...] = ()
    cautions: tuple[Caution, ...] = ()
    trials: dict[str, Trial] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        return self.runs[0].plan

    @property
    def compared(self) -> dict[str, ArmSettings]:
        """The arms that are compared for their own sake: no copy of the reference, no matched control that was added."""
        return {arm: own for arm, own in self.arms.items() if arm != self.copy and arm not in self.partners}

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Those that a method or the task of some run comes from."""
        return self.runs[0].plugins

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
        return [arm for arm in self.study.arms if self.steps(arm)]

    def choose(self, names: Sequence[str] | None) -> list[str]:
        """The arms that are named, with those that they are compared with; all of them where none are.

        The plan stays whole, so that neither its hash nor its family of comparisons shrinks.
        """
        arms = list(self.study.arms)
        for name in names or ():
            if name not in arms:
                known = f"its arms: {one_of(arms)}.{nearest(name, arms)}"
                raise FairtuneError(f"--arms: the study has no arm '{name}'; {known}")
        named = names or arms
        partners = {other for arm in named for other in (self.primaries[arm], self.matched.get(arm))}
        return [arm for arm in arms if arm in {*named, self.reference, *partners}]

    def as_json(self) -> dict[str, Any]:
        """The plan as data: what `fairtune plan --json` prints and the ledger keeps."""
        study = self.study
        optional = {
            # claims and notes are not part of the hash, since they change nothing that is run or compared
            "claims": [c.model_dump(mode="json", exclude_defaults=True) for c in study.claims],
            "author_notes": list(study.notes),
            "time": study.timing.model_dump(mode="json") if study.timing else None,
            "added": self.added,
            "tuning": self.tuned.as_json(study.tune) if self.tuned and study.tune else None,
            "plugins": [plugin.as_json() for plugin in self.plugins],
        }
        return {
            "fairtune": __version__,
            "protocol": PROTOCOL,
            "plan": self.hash,
            "study": study.study,
            "task": asdict(self.task),
            "model": self.model.as_json(),
            "tokenizer": self.tokenizer.as_json() if self.tokenizer else None,
            "order": study.order,
            "seeds": list(study.seeds),
            "arms": {arm: self._arm_json(arm) for arm in study.arms},
            "compare": _compared(study),
            "execution": study.execution.model_dump(mode="json"),
            "runs": [run.model_dump(mode="json", exclude_unset=True, include=LISTED) for run in self.runs],
            "differences": [{**asdict(d), "text": str(d)} for d in self.differences],
            "notes": list(self.notes),
            "cautions": [caution.as_json() for caution in self.cautions],
            "lengths": list(self.lengths),
            **{name: value for name, value in optional.items() if value},
        }

    def _arm_json(self, arm: str) -> dict[str, Any]:
        uses, learner = self.study.methods(arm), self.study.learner(arm)
        optional = {
            "explained": self.explained(arm),
            "learner": self.arms[arm].learner,
            "trial": self.trials[arm].as_json() if arm in self.trials else None,
            "matched": self.matched.get(arm),
            "matches": [own for own, control in self.matched.items() if control == arm and arm in self.added],
            "copy_of": self.reference if arm == self.copy else None,
        }
        return {
            "methods": [use.as_json() for use in uses],
            "train": {**self.arms[arm].settings, **self.arms[arm].tuned},
            "control": self.controls[arm],
            "primary": self.primaries[arm],
            "idle": bool(uses) and all(use.config.idle for use in uses),
            "step_factor": math.prod(
                (use.config.step_factor for use in uses), start=learner.step_factor if learner else 1.0
            ),
            **{name: value for name, value in optional.items() if value},
        }

    def explained(self, arm: str) -> dict[str, str]:
        """What the settings of an arm's methods mean for the task, by method, where they do not say it themselves."""
        found = {use.name: use.config.explained(self.task.labels) for use in self.study.methods(arm)}
        return {name: phrase for name, phrase in found.items() if phrase}


def make_plan(study: Study, force: bool = False, tuned: Tuned | None = None) -> Plan:
    """Expand a study and plan its runs. Reads the task's data and finds the model, so problems with them are known before run 1.

    Args:
        force: plan it although it would be refused; its cautions then say so.
        tuned: the settings that trials chose, of a study that has `tune`; without, its runs have them as given.

    Raises:
        RefusedPlan: its results would be worthless.
        FairtuneError: its data or its model cannot be used.
    """
    full = expand(study, tuned)
    study, arms = full.study, arm_settings(full.study, full.models, full.partners)
    controls = full.controls_of(arms)
    hashed: dict[str, Any] = {"order": study.order, "compare": _compared(study)}
    if tuned is not None and study.tune is not None:
        hashed["tuning"] = tuned.plan
    primaries = find_primaries(controls, full.reference)
    plan = Plan(**vars(full), runs=_runs(full, hashed), arms=arms, controls=controls, primaries=primaries)
    plan = replace(plan, differences=find_differences(plan.compared, controls, plan.reference, plan.missing))
    return replace(plan, cautions=find_cautions(plan, force))


def make_trial_plan(study: Study, trials: Sequence[Trial]) -> Plan:
    """The plan of trials: a study of its own, whose runs are scored on validation alone."""
    full = replace(find_inputs(trial_study(study, trials)), notes=(), lengths=())
    arms, alone = arm_settings(full.study, full.models), dict.fromkeys(full.study.arms)
    named = {trial.name: trial for trial in trials}
    return Plan(**vars(full), runs=_runs(full), arms=arms, controls=alone, primaries=alone, trials=named)


@dataclass(frozen=True)
class TuningCost:
    """What the trials of a study will take, borrowed ones not counted: trials and optimizer steps by arm, and all runs."""

    trials: dict[str, int]
    runs: int
    steps: dict[str, int]


def find_tuning_cost(plan: Plan) -> TuningCost | None:
    """What the trials of a plan's study will take; None where it has none. Borrowing adds at most one trial per rival."""
    if plan.study.tune is None:
        return None
    arms = {name: arm for name, arm in plan.study.arms.items() if name != plan.copy}
    study = plan.study.model_copy(update={"arms": arms})
    tried = make_trial_plan(study, find_trials(study, plan.task.metric, {}))
    steps = Counter[str]()
    for run in tried.runs:
        steps[tried.trials[run.arm].arm] += run.steps
    trials = Counter(trial.arm for trial in tried.trials.values())
    return TuningCost(dict(trials), len(tried.runs), dict(steps))


def _run_settings(full: FullStudy, trial: bool) -> dict[tuple[str, int], RunSettings]:
    """What decides each run, by arm and seed."""
    study, task, tokenizer = full.study, full.task, full.tokenizer
    others = copy_seeds(study.seeds)
    found = {}
    for arm in study.arms:
        train, learner, pairs, model = study.settings(arm), study.learner(arm), study.pairs(arm), full.models[arm]
        unused = UNUSED[task.kind] | train.unstated
        if learner is not None:
            unused |= {name for name in type(train).model_fields if not learner.uses(name)}
        settings: dict[str, Any] = {
            "protocol": PROTOCOL,
            "task": {"name": task.name, "fingerprint": task.fingerprint, "metric": task.metric},
            "train": train.model_dump(mode="json", exclude=unused),
            "methods": [use.as_json() for use in study.methods(arm)],
        }
        if task.kind == TEXT:
            settings["task"]["kind"] = TEXT
        if study.uses_model(arm):
            settings["model"] = {"name": model.name, "identity": model.identity}
            if tokenizer is not None:
                settings["tokenizer"] = {"name": tokenizer.name, "identity": tokenizer.identity}
        if learner is not None:
            settings["learner"] = learner.identity()
        if pairs is not None:
            settings["learner"]["pairs"] = pairs
        if plugins := _plugins(study, arm):
            settings["plugins"] = [plugin.identity() for plugin in plugins]
        if trial:
            settings["trial"] = True
        for seed in study.seeds:
            if is_resampled(train.examples):
                settings["sample"] = seed  # the study's, so that all arms share it, a copy too
            found[arm, seed] = RunSettings(**settings, seed=others[seed] if arm == full.copy else seed)
    return found


def _runs(full: FullStudy, hashed: Mapping[str, Any] | None = None) -> tuple[RunSpec, ...]:
    """The runs in the order in which they will happen.

    Args:
        hashed: what the plan's hash depends on besides; None for trials.
    """
    study, found = full.study, _run_settings(full, trial=hashed is None)
    listed = [[arm, seed, settings.as_json()] for (arm, seed), settings in found.items()]
    plan_hash = hash_of({"trials": listed} if hashed is None else {"runs": listed, **hashed})
    shared = {
        "plan": plan_hash,
        "study": study.study,
        "data": study.data(),
        "tokenizer": full.tokenizer,
        "prompts": study.prompts,
        "attention": registered_layouts(),
        "plugins": tuple(dict.fromkeys(plugin for arm in study.arms for plugin in _plugins(study, arm))),
        "checkpoint_every": study.execution.checkpoint_every,
        "save_model": study.execution.save_model,
    }
    by_arm = {arm: {"steps": full.steps(arm), "model": full.models[arm]} for arm in study.arms}
    begins = {arm: _signature(full, arm) for arm in study.arms}
    runs = []
    for position, (block, arm, seed) in enumerate(_ordered(study, plan_hash)):
        settings = found[arm, seed]
        key = hash_of(settings.as_json())
        signature = f"{begins[arm]}|seed:{seed}|run:{key}|plan:{plan_hash}"
        own = {"arm": arm, "seed": seed, "settings": settings, "key": key, "signature": signature}
        runs.append(RunSpec(**shared, **by_arm[arm], **own, position=position, block=block))
    return tuple(runs)


def _signature(full: FullStudy, arm: str) -> str:
    """The part of a signature that the runs of an arm share."""
    study, task, model, learner = full.study, full.task, full.models[arm], full.study.learner(arm)
    parts = [f"fairtune:{__version__}", f"protocol:{PROTOCOL}", f"task:{task.name}@{task.fingerprint[:8]}"]
    if learner is not None:
        parts.append(f"learner:{learner.name}.{learner.version}")
    if study.uses_model(arm):
        parts.append(f"model:{model.name}@{model.identity[:8]}")
        parts += [f"tokenizer:{full.tokenizer.identity[:8]}"] if full.tokenizer else []
    parts += [f"plugin:{plugin.label}" for plugin in _plugins(study, arm)]
    return "|".join([*parts, f"arm:{arm}"])


def _compared(study: Study) -> dict[str, Any]:
    """What verdicts compare; newer fields are left out while they have their defaults, so that hashes of older plans stay."""
    usual: dict[str, Any] = {"target_loss": None, "target": None, "also": [], "threshold": "half"}
    found = study.compare.model_dump(mode="json")
    return {name: value for name, value in found.items() if name not in usual or value != usual[name]}


def _plugins(study: Study, arm: str) -> list[Plugin]:
    """The plug-ins that an arm's methods and the task come from: other code is another run."""
    tasks = [name for name in (study.task, study.train_on) if isinstance(name, str)]
    found = [plugin_of("task", name) or plugin_of("task", name.partition("/")[0]) for name in tasks]
    found += [method_plugin(use.name) for use in study.methods(arm)]
    return list(dict.fromkeys(plugin for plugin in found if plugin is not None))


def _ordered(study: Study, plan_hash: str) -> Iterable[tuple[int, str, int]]:
    arms, seeds = list(study.arms), list(enumerate(study.seeds))
    if study.order == "sequential":
        return [(block, arm, seed) for arm in arms for block, seed in seeds]
    if study.order == "random":
        runs = [(block, arm, seed) for block, seed in seeds for arm in arms]
        random.Random(plan_hash).shuffle(runs)
        return runs
    return [(block, arm, seed) for block, seed in seeds for arm in (arms if block % 2 == 0 else reversed(arms))]
