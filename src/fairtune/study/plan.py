"""The plan: a study expanded into runs, in the order they will happen, hashed before the first of them.

`expand` makes the study whole: controls, tuned choices, a copy, lengths, matched controls. `plan` gives its runs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fairtune.core import __version__
from fairtune.core.cautions import Caution
from fairtune.core.plugin_files import Plugin
from fairtune.core.plugins import plugin_of
from fairtune.methods.registry import method_plugin
from fairtune.models.attention_layouts import registered_layouts
from fairtune.settings.few_labels import SharedSample, is_resampled, shared_samples
from fairtune.settings.learners import is_simple
from fairtune.settings.sections import UNUSED
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.added_arms import (
    add_matched_controls,
    arm_line,
    copy_seeds,
    missing_controls,
    with_controls,
    with_copy,
)
from fairtune.study.audit import (
    ArmSettings,
    Difference,
    arm_settings,
    find_controls,
    find_differences,
    find_primaries,
)
from fairtune.study.cautions import find_cautions, require_allowed
from fairtune.study.inputs import FullStudy, find_inputs
from fairtune.study.run_spec import RunSettings, RunSpec, hash_of
from fairtune.study.schema import Study
from fairtune.study.trials import Trial, Tuned, tuned_study

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
    hash: str
    arms: dict[str, ArmSettings]
    controls: dict[str, str | None]
    primaries: dict[str, str | None]
    differences: tuple[Difference, ...] = ()
    cautions: tuple[Caution, ...] = ()
    trials: dict[str, Trial] = field(default_factory=dict)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Those that a method or the task of some run comes from."""
        return all_plugins(self.study)

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
        study, reported = self.study, not self.trials
        optional = {
            # claims and notes are not part of the hash, since they change nothing that is run or compared
            "claims": [c.model_dump(mode="json", exclude_defaults=True) for c in study.claims if reported],
            "author_notes": [note for note in study.notes if reported],
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
            "copy_of": self.study.compare.to if arm == self.copy else None,
        }
        return {
            "methods": [use.as_json() for use in uses],
            "train": self.arms[arm].values,
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
    return plan(expand(study, tuned), force)


def expand(study: Study, tuned: Tuned | None = None) -> FullStudy:
    """The study with the arms that it asks for, the settings that its arms chose, and numbers for its lengths."""
    missing = missing_controls(study)
    lines = {arm: arm_line(study, arm, name) for arm, name in missing.items()}
    if study.controls:
        study = with_controls(study, missing)
    if tuned is not None:
        study = tuned_study(study, tuned.choices)
    study, copy = with_copy(study)
    added = {missing[arm]: line for arm, line in lines.items()} if study.controls else {}
    full = replace(find_inputs(study), missing=lines, added=added, copy=copy, tuned=tuned)
    if tuned is None:
        return full
    primaries = find_primaries(_controls(full, arm_settings(full.study, full.models)), study.compare.to)
    study, matched, partners = add_matched_controls(full.study, primaries, copy)
    origin = {arm: partners.get(arm, arm) for arm in study.arms}
    return replace(
        full,
        study=study,
        models={arm: full.models[origin[arm]] for arm in study.arms},
        examples={arm: full.examples[origin[arm]] for arm in study.arms},
        added={**added, **{name: arm_line(study, name, name) for name in partners}},
        matched=matched,
        partners=partners,
    )


def _controls(full: FullStudy, arms: Mapping[str, ArmSettings]) -> dict[str, str | None]:
    """Each arm's control: that of a copy is what it copies, and a matched control has none."""
    reference = full.study.compare.to
    found = find_controls(arms, reference) | dict.fromkeys(full.partners)
    return found if full.copy is None else {**found, full.copy: reference}


def plan(full: FullStudy, force: bool = False) -> Plan:
    """The runs of a whole study, its audit, and what to know before the first run.

    Raises:
        RefusedPlan: its results would be worthless, and it is not forced.
    """
    study, reference = full.study, full.study.compare.to
    arms = arm_settings(study, full.models, full.partners)
    controls = _controls(full, arms)
    primaries = find_primaries(controls, reference)
    judged = {arm: own for arm, own in arms.items() if arm not in full.partners}
    cautions = require_allowed(find_cautions(full, judged, primaries), force)
    settings = run_settings(full)
    hashed: dict[str, Any] = {
        "runs": [[arm, seed, found.as_json()] for (arm, seed), found in settings.items()],
        "order": study.order,
        "compare": _compared(study),
    }
    if full.tuned is not None and study.tune is not None:
        hashed["tuning"] = full.tuned.plan
    plan_hash = hash_of(hashed)
    return Plan(
        **vars(full),
        runs=plan_runs(full, settings, plan_hash),
        hash=plan_hash,
        arms=arms,
        controls=controls,
        primaries=primaries,
        differences=find_differences(judged, reference, full.missing),
        cautions=cautions,
    )


def run_settings(full: FullStudy, **more: Any) -> dict[tuple[str, int], RunSettings]:
    """What decides each run, by arm and seed.

    Args:
        more: settings that all of them have.
    """
    study = full.study
    shared = {arm: _settings(full, arm) | more for arm in study.arms}
    others = copy_seeds(study.seeds) if full.copy else {}
    found = {}
    for arm in study.arms:
        resampled = is_resampled(study.settings(arm).examples)
        for seed in study.seeds:  # a sample is drawn by the study's seed, so that all arms share it, a copy too
            sample = {"sample": seed} if resampled else {}
            found[arm, seed] = RunSettings(**shared[arm], seed=others[seed] if arm == full.copy else seed, **sample)
    return found


def plan_runs(full: FullStudy, found: Mapping[tuple[str, int], RunSettings], plan_hash: str) -> tuple[RunSpec, ...]:
    """The runs in the order in which they will happen."""
    study, task = full.study, full.task
    shared = {
        "plan": plan_hash,
        "study": study.study,
        "data": study.data(),
        "tokenizer": full.tokenizer,
        "prompts": study.prompts,
        "attention": registered_layouts(),
        "plugins": all_plugins(study),
        "checkpoint_every": study.execution.checkpoint_every,
        "save_model": study.execution.save_model,
    }
    steps = {arm: full.steps(arm) for arm in study.arms}
    runs = []
    for position, (block, arm, seed) in enumerate(_ordered(study, plan_hash)):
        settings = found[arm, seed]
        key = hash_of(settings.as_json())
        labels = "".join(f"|plugin:{plugin.label}" for plugin in _plugins(study, arm))
        signature = (
            f"fairtune:{__version__}|protocol:{PROTOCOL}|task:{task.name}@{task.fingerprint[:8]}"
            f"{_learned(full, arm)}{labels}|arm:{arm}|seed:{seed}|run:{key}|plan:{plan_hash}"
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
                model=full.models[arm],
            )
        )
    return tuple(runs)


def _settings(full: FullStudy, arm: str) -> dict[str, Any]:
    """What decides the runs of an arm besides the seed."""
    study, task, model, tokenizer = full.study, full.task, full.models[arm], full.tokenizer
    train, learner, pairs = study.settings(arm), study.learner(arm), study.pairs(arm)
    unused = UNUSED[task.kind] | train.unstated
    if learner is not None:
        unused |= {name for name in type(train).model_fields if not learner.uses(name)}
    kind = {"kind": TEXT} if task.kind == TEXT else {}
    settings: dict[str, Any] = {
        "protocol": PROTOCOL,
        "task": {"name": task.name, "fingerprint": task.fingerprint, "metric": task.metric, **kind},
        "train": train.model_dump(mode="json", exclude=unused),
        "methods": [use.as_json() for use in study.methods(arm)],
    }
    if study.uses_model(arm):
        settings["model"] = {"name": model.name, "identity": model.identity}
        if tokenizer is not None:
            settings["tokenizer"] = {"name": tokenizer.name, "identity": tokenizer.identity}
    if learner is not None:
        settings["learner"] = {**learner.identity(), **({} if pairs is None else {"pairs": pairs})}
    if plugins := _plugins(study, arm):
        settings["plugins"] = [plugin.identity() for plugin in plugins]
    return settings


def _learned(full: FullStudy, arm: str) -> str:
    """What an arm learns with, as signatures have it."""
    learner, model, tokenizer = full.study.learner(arm), full.models[arm], full.tokenizer
    found = f"|learner:{learner.name}.{learner.version}" if learner else ""
    if full.study.uses_model(arm):
        found += f"|model:{model.name}@{model.identity[:8]}"
        found += f"|tokenizer:{tokenizer.identity[:8]}" if tokenizer else ""
    return found


def _compared(study: Study) -> dict[str, Any]:
    """What verdicts compare; newer fields are left out while they have their defaults, so that hashes of older plans stay."""
    found = study.compare.model_dump(mode="json")
    usual: dict[str, Any] = {"target_loss": None, "target": None, "also": [], "threshold": "half"}
    return {name: value for name, value in found.items() if name not in usual or value != usual[name]}


def all_plugins(study: Study) -> tuple[Plugin, ...]:
    """Those that a method or the task of some run comes from."""
    return tuple(dict.fromkeys(plugin for arm in study.arms for plugin in _plugins(study, arm)))


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
