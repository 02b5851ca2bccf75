"""Settings of how runs are computed (kernels, compilation, checkpointing): where they cannot be, and what differences mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairtune.core.cautions import Caution
from fairtune.settings.sections import ARITHMETIC
from fairtune.study.audit import ArmSettings, setting_text
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path

NEEDS_GPU = "flash needs a GPU, and execution.devices is cpu; use sdpa or eager, or leave it out"


def arithmetic_problems(study: Study, origins: Origins) -> list[Problem]:
    """Kernels of a GPU in a study of CPUs; whether there is a GPU elsewhere shows when a run begins."""
    if set(study.execution.devices) != {"cpu"}:
        return []
    places: list[Path] = [("train", "attention_kernel")] if study.train.attention_kernel == "flash" else []
    for arm, own in study.arms.items():
        if getattr(own, "attention_kernel", None) == "flash":
            places.append(("arms", arm, "attention_kernel"))
    return [Problem(origins.of(place), dotted(place), NEEDS_GPU) for place in places]


def arithmetic_cautions(arms: Mapping[str, ArmSettings], primaries: Mapping[str, str | None]) -> Iterator[Caution]:
    """Arms that are computed otherwise than those they are compared with, and runs that cannot be repeated."""
    for arm, own in arms.items():
        other = primaries[arm]
        if other is None or other not in arms:
            continue
        theirs = arms[other].settings
        names = [name for name in ARITHMETIC if own.settings[name] != theirs[name]]
        if names:
            texts = [f"{name} {_value(own, name)} and {_value(arms[other], name)}" for name in names]
            yield Caution(
                "warning",
                "unequal-arithmetic",
                f"{arm} and {other}: {', '.join(texts)}",
                "they train alike but for the last bits, but time and memory are then those of this as much as of the method",
                f"Give both the same {' and '.join(names)}, or compare neither times nor memory",
            )
    loose = [arm for arm, own in arms.items() if own.settings["deterministic"] is False]
    if loose:
        yield Caution(
            "note",
            "not-deterministic",
            f"deterministic is false in {', '.join(loose)}",
            "on a GPU the same seed may then give other last bits each time, also when a run was stopped and goes on",
            "Leave it out where runs must be repeated to the bit",
        )


def _value(arm: ArmSettings, name: str) -> str:
    return setting_text(name, arm.settings[name])
