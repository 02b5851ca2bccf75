"""What cannot be when several devices share a run, as far as the file tells: methods that need a run, or a model, in one piece."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.settings.learners import is_simple
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path

DEVICES, SHARDING = "execution.devices_per_run", "execution.sharding"


def sharing_problems(study: Study, origins: Origins) -> list[Problem]:
    """Every arm can be trained by as many devices as the study gives a run, and with its weights divided where it says so."""
    devices, shards = study.execution.devices_per_run, study.execution.sharding == "full"
    found: list[tuple[Path, str]] = []
    if devices == 1:
        if shards:
            reason = "full divides a model among the devices of a run, but devices_per_run is 1; set it to 2 or more"
            found.append((("execution", "sharding"), reason))
    else:
        for arm in study.arms:
            found += _arm_problems(study, arm, devices, shards)
    return [Problem(origins.of(path), dotted(path), reason) for path, reason in found]


def _arm_problems(study: Study, arm: str, devices: int, shards: bool) -> Iterator[tuple[Path, str]]:
    learner, train = study.learner(arm), study.settings(arm)
    if learner is not None and is_simple({"learner": learner.name}):
        return  # fitted by one process, whatever a run has
    for position, use in enumerate(study.methods(arm)):
        path: Path = ("arms", arm, "methods", position)
        if reason := use.config.one_process:
            yield (
                path,
                f"'{use.name}' cannot be shared by {devices} devices: {reason}; set `{DEVICES}` to 1, or remove it",
            )
        elif shards and (reason := use.config.whole_weights):
            yield path, f"'{use.name}' cannot train divided weights: {reason}; set `{SHARDING}` to none, or remove it"
    if train.batch_size < devices:
        own = ("arms", arm, "batch_size")
        path = own if getattr(study.arms[arm], "batch_size", None) is not None else ("train", "batch_size")
        yield (
            path,
            f"{train.batch_size} cannot be divided among {devices} devices; use a larger one, or lower `{DEVICES}`",
        )
    if shards and train.compile:
        own = ("arms", arm, "compile")
        path = own if getattr(study.arms[arm], "compile", None) is not None else ("train", "compile")
        yield path, f"compiled layers cannot be divided; leave it out, or set `{SHARDING}` to none"
    if shards and learner is not None:
        yield ("arms", arm, "learner"), f"'{learner.name}' fits a head on the whole model; set `{SHARDING}` to none"
    if shards and train.precision == "fp16":
        own = ("arms", arm, "precision")
        path = own if getattr(study.arms[arm], "precision", None) is not None else ("train", "precision")
        yield path, f"fp16 scales losses, which divided gradients do not allow; use bf16, or set `{SHARDING}` to none"
