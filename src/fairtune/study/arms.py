"""How the `arms` of a study are read: every arm ends up with its methods or its learner, wherever they come from.

In this order: the arm's own `methods` or `learner`; the named arm that `preset` says; the named arm of the same name; none.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, TypeAdapter
from pydantic_core import PydanticCustomError

from fairtune.methods.arms import named_arms


def _known(name: str) -> str:
    if name not in (known := named_arms()):
        raise PydanticCustomError("unknown", "unknown", {"what": "named arm", "name": name, "allowed": list(known)})
    return name


ArmPreset = Annotated[str, AfterValidator(_known)]
_ARM_LIST: TypeAdapter[list[str]] = TypeAdapter(list[ArmPreset])


def is_arm_list(value: Any) -> TypeGuard[list[str]]:
    """Whether a value is a list of different named arms."""
    named = isinstance(value, list) and all(isinstance(name, str) and name in named_arms() for name in value)
    return named and len(set(value)) == len(value)


def resolve_arms(value: Any) -> Any:
    """The arms as a mapping in which every arm lists its methods; what is wrong stays, for the schema to refuse."""
    if isinstance(value, list):
        names = _ARM_LIST.validate_python(value)
        value = dict.fromkeys(names)
        if len(value) < len(names):
            raise PydanticCustomError("repeated", "a name is given twice")
    if not isinstance(value, dict):
        return value
    known, found = named_arms(), dict[Any, Any]()
    for name, given in value.items():
        arm = found[name] = {} if given is None else given
        if not isinstance(arm, dict) or "methods" in arm or "learner" in arm:
            continue
        wanted = name if arm.get("preset") is None else arm["preset"]
        if named := known.get(wanted) if isinstance(wanted, str) else None:
            own = {field: part for field, part in arm.items() if field != "preset"}
            learned = {"methods": named.uses} if named.learner is None else {"learner": named.learner}
            found[name] = {**own, **learned}
    return found


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
