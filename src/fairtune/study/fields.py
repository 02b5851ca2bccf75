"""The fields of a study, read from its JSON schema: what each means, what it allows, its default, an example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.core.errors import FairtuneError, nearest
from fairtune.study.allowed import Fragment, allowed_text, fragment_at, options, study_schema, word

EXAMPLES = {
    "task": "task: {train: reviews.csv, text: review, label: stars}",
    "task.text": "text: [premise, hypothesis]",
    "task.holdout": "holdout: {validation: 0.1, test: 0.2}",
    "model.preset": "preset: gpt-mini",
    "tokenizer": "tokenizer: {train: 8000}",
    "train": "train: {epochs: 3, batch_size: 32, max_length: auto}",
    "train.examples": "examples: {per_class: 8, resample: seed}",
    "train.betas": "betas: [0.9, 0.98]",
    "arms.NAME": "arms: {baseline: {lr: 2e-5}, my-arm: {lr: 2e-5, methods: [focal]}}",
    "arms.NAME.methods": "methods: [fgm, {focal: {gamma: 2}}]",
    "arms.NAME.*": "my-arm: {lr: 1e-4, epochs: 5}",
    "tune": "tune: {space: {lr: [2e-5, 1e-4, 3e-4]}, trials: 3, seeds: 2}",
    "tune.space": "space: {lr: {low: 1e-5, high: 1e-3, log: true}}",
    "tune.budget": "budget: {epochs: 1, examples: 1000}",
    "compare": "compare: {to: baseline, margin: 1.5%}",
    "claims": "claims: [{arm: my-arm, better_than: baseline, by: 0.5%}, {arm: my-arm, faster: 1.3x}]",
    "notes": "notes: [Training is stable., Seed 3 was run on another machine.]",
    "execution.slurm": "slurm: {partition: gpu, time: 4:00:00, gres: gpu:1, cpus: 4, memory: 16G, max_parallel: 4}",
    "time": "time: {minutes: 10, precision: 2%}",
    "track": "track: [tensorboard, mlflow]",
    "plugins": "plugins: [my_module]",
    "profiles": "profiles: {quick: {train: {epochs: 1}, seeds: 3}}",
    "augment": "methods: [{augment: {delete: 0.1, typo: 0.05}}]",
    "augment.function": "methods: [{augment: {function: my_module:translate_back}}]",
    "bpsom": "methods: [{bpsom: {hidden: 64, grid: 10}}]",
    "focal": "methods: [{focal: {gamma: 2, alpha: balanced}}]",
    "focal.alpha": "methods: [{focal: {alpha: [0.25, 0.75]}}]",
    "freeze": "methods: [{freeze: {parts: [embeddings]}}]",
    "layerwise_lr": "methods: [{layerwise_lr: {decay: 0.95, head_multiplier: 10}}]",
    "layerwise_lr.groups": "methods: [{layerwise_lr: {groups: [{match: encoder, lr: 2e-5}, {match: pooler, lr: 5e-5}]}}]",
    "orthogonal_qk": "methods: [{orthogonal_qk: {init: headwise, layers: 3-5}}]",
    "peft": "methods: [{peft: {type: lora, r: 8}}]",
    "weighted_ce.weights": "methods: [{weighted_ce: {weights: {negative: 1, positive: 3}}}]",
}
"""How fields are written whose allowed values do not show it, by their path, as in a study file; a test loads each of them."""

OTHER_NAMES = {
    "learning_rate": "lr",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "max_steps": "steps",
    "per_device_train_batch_size": "batch_size",
    "gradient_accumulation_steps": "accumulate",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
    "lr_scheduler_type": "schedule",
    "max_grad_norm": "clip",
    "max_seq_length": "max_length",
    "eval_steps": "evaluate",
    "early_stopping_patience": "patience",
    "seed": "seeds",
}
"""What other libraries call some of them."""


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


def field_docs() -> list[FieldDoc]:
    """Every field of a study file, in the order of the schema, methods last."""
    docs = list(_below(study_schema(), ""))
    for name, fragment in _methods().items():
        docs += [_doc(name, "", "", fragment), *_below(fragment, f"{name}.")]
    return docs


def method_names() -> list[str]:
    return list(_methods())


def method_docs(name: str) -> list[FieldDoc]:
    return list(_below(_methods()[name], ""))


def find_fields(name: str) -> list[FieldDoc]:
    """A field and all that are below it, by its place in a study file; a method's also as arms.focal or focal.gamma."""
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


def _documented(name: str) -> list[str]:
    """Where a place of a study file may be explained, the likeliest first."""
    path = re.sub(r"\[\d*\]|^profiles\.[^.]+\.", "", name.strip().lower())
    of_method = re.sub(r"^((arms\.[^.]+\.)?methods|arms)\.", "", path)
    return [
        *([of_method] if of_method.partition(".")[0] in method_names() else []),
        path,
        re.sub(r"^arms(\.[^.]+)?", "arms.NAME", path),
        re.sub(r"^(tune\.budget|arms\.[^.]+)\.", "train.", path),
    ]


def _methods() -> dict[str, Fragment]:
    """The settings of each method, by name: in what order they were registered depends on what was imported first."""
    _, uses = options(fragment_at(("arms", "NAME", "methods", 0)))
    return dict(sorted(uses["properties"].items()))


def _doc(path: str, allowed: str, default: str, part: Fragment) -> FieldDoc:
    return FieldDoc(path, allowed, default, part.get("description", ""), EXAMPLES.get(path, ""))


def _below(fragment: Fragment, prefix: str) -> Iterator[FieldDoc]:
    for name, part in fragment.get("properties", {}).items():
        path = f"{prefix}{name}"
        if name == "arms":
            yield from _arm(part)
            continue
        is_list = path == "claims"  # its entries have fields of their own
        kinds = [one for one in options(part["items"] if is_list else part) if one.get("type") != "null"]
        nested = [kind for kind in kinds if kind.get("properties")]
        allowed = allowed_text(part) if is_list or len(kinds) > 1 or not nested else ""
        default = "required" if name in fragment.get("required", ()) else _default(part, bool(nested))
        yield _doc(path, allowed, default, part)
        if path == "tune.budget":
            yield _doc(f"{path}.*", "", "", {"description": "Any field of `train`, for trials alone."})
        else:
            for option in nested:
                yield from _below(option, f"{path}.")


def _arm(arms: Fragment) -> Iterator[FieldDoc]:
    """What an arm has of its own; the fields of `train` are explained there."""
    yield _doc("arms.NAME", "a mapping", "required", arms)
    train = fragment_at(("train",))["properties"]
    for name, part in fragment_at(("arms", "NAME"))["properties"].items():
        if name == "methods":
            yield _doc("arms.NAME.methods", "a list of methods: names, or {NAME: {FIELD: VALUE}}", "[]", part)
        elif name not in train:
            yield _doc(f"arms.NAME.{name}", allowed_text(part), _default(part), part)
    yield _doc("arms.NAME.*", "", "", {"description": "Any field of `train`, for this arm alone."})


def _default(part: Fragment, section: bool = False) -> str:
    value = part.get("default")
    if section and ("default" not in part or isinstance(value, dict)):
        return ""
    return f"[{', '.join(map(word, value))}]" if isinstance(value, list) else word(value)
