"""The fields of a study, read from its JSON schema: what each means, what it allows, its default, an example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.core.errors import FairtuneError, nearest
from fairtune.study.allowed import Fragment, allowed_text, options, resolved, schema_root, word
from fairtune.study.field_examples import EXAMPLES, OTHER_NAMES


@dataclass(frozen=True)
class FieldDoc:
    """One field as help shows it.

    Args:
        path: its place in a study file; a method's as METHOD.FIELD, as in `tune.space`.
        default: as YAML has it, or `required`; empty where a section is meant.
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
        if first in method_names():
            settings = f"{{{rest}: {self.example}}}" if rest else self.example
            return f"methods: [{{{first}: {settings}}}]"
        own = {"arms.NAME": "arms", "arms.NAME.*": "my-arm"}.get(self.path)
        return f"{own or self.path.rpartition('.')[2]}: {self.example}"


def field_docs() -> list[FieldDoc]:
    """Every field of a study file, in the order of the schema, methods last."""
    docs = list(_below(schema_root(), ""))
    for name, fragment in _methods().items():
        docs += [_doc(name, "", "", fragment["description"]), *_below(fragment, f"{name}.")]
    return docs


def method_names() -> list[str]:
    """Every method that an arm can have, by the alphabet."""
    return list(_methods())


def method_docs(name: str) -> list[FieldDoc]:
    """Every setting of a method."""
    return list(_below(_methods()[name], ""))


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
    path = next((one for one in _documented(name) if one in known), None)
    if path is None:
        raise FairtuneError(
            f"a study has no field '{name}'.{nearest_field(name)} `fairtune help study` lists them all."
        )
    return [known[path], *(doc for doc in docs if doc.path.startswith(f"{path}."))]


def nearest_field(name: str) -> str:
    """`` Did you mean 'train.lr'?`` for `lr`, `learning_rate` or `train.learning_rate`; empty where no field is near."""
    last = name.rpartition(".")[2]
    wanted = OTHER_NAMES.get(last, last)
    ends: dict[str, str] = {}
    for doc in field_docs():
        ends.setdefault(doc.path.rpartition(".")[2], doc.path)
    if wanted in ends and ends[wanted] != name:
        return f" Did you mean '{ends[wanted]}'?"
    return nearest(name, [doc.path for doc in field_docs()]) or nearest(last, ends)


def _documented(name: str) -> Iterator[str]:
    """Where a place of a study file may be explained, the likeliest first."""
    path = re.sub(r"\[\d*\]", "", name.strip().lower())
    yield path
    path = re.sub(r"^tune\.budget\.", "train.", re.sub(r"^profiles\.[^.]+\.", "", path))
    yield path
    methods, (arm, *settings) = method_names(), path.removeprefix("arms.").split(".")
    if path.startswith("arms.") and (arm in methods or (nearest(arm, methods) and not settings)):
        yield ".".join([arm, *settings])
    else:
        yield re.sub(r"^(arms\.[^.]+\.)?methods\.", "", path)
        yield re.sub(r"^arms(\.[^.]+)?", "arms.NAME", path)
        yield re.sub(r"^arms\.[^.]+\.", "train.", path)


def _methods() -> dict[str, Fragment]:
    """The settings of each method, by name: in what order they were registered depends on what was imported first."""
    uses = schema_root()["$defs"].get("MethodUse", {"anyOf": [{}, {"properties": {}}]})
    return dict(sorted(uses["anyOf"][1]["properties"].items()))


def _doc(path: str, allowed: str, default: str, help: str) -> FieldDoc:
    return FieldDoc(path, allowed, default, help, EXAMPLES.get(path, ""))


def _below(fragment: Fragment, prefix: str) -> Iterator[FieldDoc]:
    for name, raw in fragment.get("properties", {}).items():
        part, path = resolved(raw), f"{prefix}{name}"
        if name == "arms":
            yield from _arm(part["description"])
            continue
        is_list = path == "claims"  # its entries have fields of their own
        kinds = [one for one in options(part["items"] if is_list else part) if one.get("type") != "null"]
        nested = [kind for kind in kinds if kind.get("properties")]
        allowed = allowed_text(part) if is_list or len(kinds) > 1 or not nested else ""
        default = "required" if name in fragment.get("required", ()) else _default(part, bool(nested))
        yield _doc(path, allowed, default, part.get("description", ""))
        if path == "tune.budget":
            yield _doc(f"{path}.*", "", "", "Any field of `train`, for trials alone.")
            continue
        for option in nested:
            yield from _below(option, f"{path}.")


def _arm(description: str) -> Iterator[FieldDoc]:
    """What an arm has of its own; the fields of `train` are explained there."""
    definitions = schema_root()["$defs"]
    yield _doc("arms.NAME", "a mapping", "required", description)
    for name, raw in definitions["Arm"]["properties"].items():
        if name not in definitions["Train"]["properties"]:
            part = resolved(raw)
            is_methods = name == "methods"
            allowed = "a list of methods: names, or {NAME: {FIELD: VALUE}}" if is_methods else allowed_text(part)
            yield _doc(f"arms.NAME.{name}", allowed, "[]" if is_methods else _default(part), part["description"])
    yield _doc("arms.NAME.*", "", "", "Any field of `train`, for this arm alone.")


def _default(part: Fragment, section: bool = False) -> str:
    value = part.get("default")
    if section and ("default" not in part or isinstance(value, dict)):
        return ""
    return f"[{', '.join(map(word, value))}]" if isinstance(value, list) else word(value)
