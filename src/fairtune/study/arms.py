"""How the `arms` of a study are read: every arm ends up with its methods or its learner, wherever they come from.

In this order: the arm's own `methods` or `learner`; the named arm that `preset` says; the named arm of the same name; none.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, TypeAdapter
from pydantic_core import PydanticCustomError

from fairtune.methods.arms import NamedArm, named_arms


def _known(name: str) -> str:
    known = named_arms()
    if name not in known:
        raise PydanticCustomError("unknown", "unknown", {"what": "named arm", "name": name, "allowed": list(known)})
    return name


def _different(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise PydanticCustomError("repeated", "a name is given twice")
    return names


ArmPreset = Annotated[str, AfterValidator(_known)]
_ARM_LIST: TypeAdapter[list[str]] = TypeAdapter(Annotated[list[ArmPreset], AfterValidator(_different)])


def is_arm_list(value: Any) -> TypeGuard[list[str]]:
    """Whether a value is a list of different named arms."""
    return (
        isinstance(value, list)
        and all(isinstance(name, str) and name in named_arms() for name in value)
        and len(set(value)) == len(value)
    )


def resolve_arms(value: Any) -> Any:
    """The arms as a mapping in which every arm lists its methods; what is wrong stays, for the schema to refuse."""
    if isinstance(value, list):
        value = dict.fromkeys(_ARM_LIST.validate_python(value))
    if not isinstance(value, dict):
        return value
    known = named_arms()
    return {name: _resolved(name, {} if arm is None else arm, known) for name, arm in value.items()}


def _resolved(name: Any, arm: Any, known: dict[str, NamedArm]) -> Any:
    if not isinstance(arm, dict) or "methods" in arm or "learner" in arm:
        return arm
    wanted = name if arm.get("preset") is None else arm["preset"]
    found = known.get(wanted) if isinstance(wanted, str) else None
    if found is None:
        return arm
    own = {field: given for field, given in arm.items() if field != "preset"}
    return {**own, "methods": found.uses} if found.learner is None else {**own, "learner": found.learner}


def add_named_arms(schema: dict[str, Any]) -> None:
    """Put the named arms, and the list form of `arms`, into the JSON schema of a study."""
    schema["$defs"]["NamedArm"] = {
        "type": "string",
        "enum": list(named_arms()),
        "description": "A named arm; one with settings of its own is written `NAME: {lr: 1e-4}`, in a mapping of arms.",
    }
    arm = schema["$defs"]["Arm"]
    arm["properties"]["preset"]["anyOf"][0] = {"$ref": "#/$defs/NamedArm"}
    arm["not"] = {"required": ["methods", "preset"], "properties": {"preset": {"type": "string"}}}
    mapping = schema["properties"]["arms"]
    shared = {key: mapping.pop(key) for key in ("title", "description")}
    names = {"type": "array", "items": {"$ref": "#/$defs/NamedArm"}, "minItems": 1, "uniqueItems": True}
    schema["properties"]["arms"] = {"anyOf": [mapping, names], **shared}
