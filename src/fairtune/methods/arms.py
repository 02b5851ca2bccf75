"""Named arms: lists of methods with a name and a reason, ready to use in a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from fairtune.core.plugins import note
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import conflicts, parse_method_use, registered
from fairtune.settings.learners import LEARNERS
from fairtune.settings.values import ArmName


@dataclass(frozen=True)
class NamedArm:
    """An arm that a study may use by its name.

    Args:
        help: one line: what the arm is, and what it is a control for.
        methods: as a study file would list them.
        learner: of a simple baseline, which is not fine-tuned and has no methods.
    """

    name: str
    help: str
    methods: tuple[Any, ...]
    learner: str | None = None

    @cached_property
    def uses(self) -> tuple[MethodUse, ...]:
        """The methods, read; not when registered, since that happens before all methods are known."""
        try:
            found = tuple(parse_method_use(method) for method in self.methods)
        except (ValidationError, PydanticCustomError) as error:
            raise ValueError(f"named arm {self.name!r}: its methods cannot be read: {error}") from error
        for position, reason in conflicts(found):
            raise ValueError(f"named arm {self.name!r}, {found[position].name!r}: {reason}")
        return found


FAMILIES = ("bpsom", "oelm")
"""An arm whose name begins so is expected to have methods; one without is a slip."""
_arms: dict[str, NamedArm] = {}


def register_arm(name: str, help: str, methods: Sequence[Any]) -> None:
    """Make a named arm known. Refuses anything that would later surprise a user.

    Args:
        methods: as a study file lists them; read when the arms are first asked for.
    """
    try:
        TypeAdapter(ArmName).validate_python(name)
    except ValidationError:
        raise ValueError(f"named arm {name!r}: a study could not have an arm of this name") from None
    if name in _arms:
        raise ValueError(f"named arm {name!r} is registered twice")
    note("named arm", name, "", lambda: _arms.pop(name, None))
    _arms[name] = NamedArm(name, help.strip(), tuple(methods))


def named_arms() -> dict[str, NamedArm]:
    """All named arms by name, each of them readable."""
    registered()
    for arm in _arms.values():
        arm.uses  # noqa: B018 - raises if the methods cannot be read
    return dict(_arms)


def family_of(name: str) -> str | None:
    """The family that this name promises, or None."""
    return next((family for family in FAMILIES if name.lower().startswith(family)), None)


register_arm("baseline", "The untouched checkpoint, everything trains: what every method is compared to.", [])
register_arm(
    "baseline-trainable",
    "The same as baseline, an A/A control: any difference from it, in score or in timing, is noise.",
    [],
)
_arms |= {learner.name: NamedArm(learner.name, learner.help, (), learner.name) for learner in LEARNERS.values()}
