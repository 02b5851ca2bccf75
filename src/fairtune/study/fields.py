"""The fields of a study, read from its JSON schema: what each means, what it allows, its default, an example."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairtune.core.errors import FairtuneError, nearest
from fairtune.study.allowed import allowed_text, word
from fairtune.study.field_examples import EXAMPLES
from fairtune.study.fragments import Fragment, alternatives, resolved, schema_root

ANY_OF_TRAIN = ("arms.NAME", "tune.budget")
"""Places that take every field of `train`, which is explained once, there."""
LISTS = ("claims",)
"""Lists whose entries have fields of their own."""


@dataclass(frozen=True)
class FieldDoc:
    """One field as help shows it.

    Args:
        path: its place in a study file; a method's as METHOD.FIELD, as in `tune.space`.
        default: as YAML has it, or `required`; empty where a section is meant.
        example: a value, as YAML has it.
    """

    path: str
    allowed: str
    default: str
    help: str
    example: str = ""

    @property
    def snippet(self) -> str:
        """The example as it stands in a study file; empty where there is none."""
        if not self.example:
            return ""
        first, _, rest = self.path.partition(".")
        if first in _method_fragments():
            settings = f"{{{rest}: {self.example}}}" if rest else self.example
            return f"methods: [{{{first}: {settings}}}]"
        own = {"arms.NAME": "arms", "arms.NAME.*": "my-arm"}.get(self.path)
        return f"{own or self.path.rpartition('.')[2]}: {self.example}"


def field_docs() -> list[FieldDoc]:
    """Every field of a study file, in the order of the schema, methods last."""
    docs: list[FieldDoc] = []
    _collect(schema_root(), "", docs)
    for name, fragment in _method_fragments().items():
        docs.append(FieldDoc(name, "", "", fragment["description"], EXAMPLES.get(name, "")))
        _collect(fragment, f"{name}.", docs)
    return docs


def method_names() -> list[str]:
    """Every method that an arm can have, by the alphabet."""
    return list(_method_fragments())


def method_docs(name: str) -> list[FieldDoc]:
    """Every setting of a method."""
    docs: list[FieldDoc] = []
    _collect(_method_fragments()[name], "", docs)
    return docs


def find_fields(name: str) -> list[FieldDoc]:
    """A field and all that are below it.

    Args:
        name: its place in a study file, such as train.epochs, arms.my-arm.lr or arms.my-arm.methods[0].focal.gamma; a
            method's also as arms.focal or focal.gamma.

    Raises:
        FairtuneError: there is no such field.
    """
    docs = field_docs()
    known = {doc.path: doc for doc in docs}
    path = _as_documented(name, known)
    if path not in known:
        ends: dict[str, str] = {doc.path.rpartition(".")[2]: doc.path for doc in docs}
        hint = nearest(path, known) or nearest(path, ends)
        raise FairtuneError(f"a study has no field '{name}'.{hint} `fairtune help study` lists them all.")
    return [known[path], *(doc for doc in docs if doc.path.startswith(f"{path}."))]


def _as_documented(name: str, known: dict[str, FieldDoc]) -> str:
    """Where a place of a study file is explained."""
    parts = [part for part in re.sub(r"\[\d*\]", "", name.strip().lower()).split(".") if part]
    if parts[:1] == ["arms"]:
        if parts == ["arms"]:
            return "arms.NAME"
        if parts[1] in _method_fragments() or (len(parts) == 2 and nearest(parts[1], _method_fragments())):
            return ".".join(parts[1:])
        own = parts[2:]
        if own[:1] == ["methods"] and len(own) > 1:
            return ".".join(own[1:])
        path = ".".join(["arms.NAME", *own])
        return path if path in known or not own else ".".join(["train", *own])
    if parts[:1] == ["methods"] and len(parts) > 1:
        return ".".join(parts[1:])
    if parts[:2] == ["tune", "budget"] and len(parts) > 2 and parts[2] != "*":
        return ".".join(["train", *parts[2:]])
    if parts[:1] == ["profiles"] and len(parts) > 2:
        return _as_documented(".".join(parts[2:]), known)
    return ".".join(parts)


def _method_fragments() -> dict[str, Fragment]:
    """The settings of each method, by name: in what order they were registered depends on what was imported first."""
    found: dict[str, Fragment] = schema_root()["$defs"]["MethodUse"]["anyOf"][1]["properties"]
    return dict(sorted(found.items()))


def _collect(fragment: Fragment, prefix: str, docs: list[FieldDoc]) -> None:
    required = set(fragment.get("required", ()))
    for name, raw in fragment.get("properties", {}).items():
        part = resolved(raw)
        path = f"{prefix}{name}"
        if name == "arms":
            _collect_arm(part["description"], docs)
            continue
        listed = [resolved(part["items"])] if path in LISTS else []
        nested = listed or [option for option in alternatives(part) if option.get("properties")]
        only_nested = bool(nested) and not listed and not any("oneOf" in option for option in alternatives(part))
        default = "required" if name in required else "" if nested and "default" not in part else _default(part)
        docs.append(
            FieldDoc(
                path,
                "" if only_nested else allowed_text(part),
                "" if isinstance(part.get("default"), dict) and nested else default,
                part.get("description", ""),
                EXAMPLES.get(path, ""),
            )
        )
        if path in ANY_OF_TRAIN:
            docs.append(FieldDoc(f"{path}.*", "", "", "Any field of `train`, for trials alone."))
            continue
        for option in nested:
            _collect(option, f"{path}.", docs)


def _collect_arm(description: str, docs: list[FieldDoc]) -> None:
    """What an arm has of its own; the fields of `train` are explained there."""
    definitions = schema_root()["$defs"]
    docs.append(FieldDoc("arms.NAME", "a mapping", "required", description, EXAMPLES["arms.NAME"]))
    for name, raw in definitions["Arm"]["properties"].items():
        if name in definitions["Train"]["properties"]:
            continue
        part, path = resolved(raw), f"arms.NAME.{name}"
        allowed = "a list of methods: names, or {NAME: {FIELD: VALUE}}" if name == "methods" else allowed_text(part)
        default = "[]" if name == "methods" else _default(part)
        docs.append(FieldDoc(path, allowed, default, part["description"], EXAMPLES.get(path, "")))
    docs.append(FieldDoc("arms.NAME.*", "", "", "Any field of `train`, for this arm alone.", EXAMPLES["arms.NAME.*"]))


def _default(part: Fragment) -> str:
    value = part.get("default")
    if isinstance(value, list):
        return f"[{', '.join(map(word, value))}]"
    return word(value)
