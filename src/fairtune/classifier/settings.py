"""A classifier's parameters, checked as a study's are: the same words, limits and messages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from fairtune.classifier.errors import SettingsError
from fairtune.core.errors import ModelError, one_of, shown
from fairtune.methods.config import MethodUse
from fairtune.models.presets import parse_preset
from fairtune.settings.metrics import METRICS
from fairtune.settings.sections import Train
from fairtune.settings.values import AUTO, LARGEST_SEED
from fairtune.study.problems import Problem, StudyError
from fairtune.study.study_file import load_study

WHERE = "TextClassifier"
OWN = ("lr", "epochs", "batch_size", "max_length", "patience")
"""Fields of `train` that are parameters of their own."""
UNFIT = {
    "examples": "give fewer texts to `fit` instead",
    "eval_examples": "give fewer texts as `validation` instead",
    "tokens": "this counts the training text of language models",
}
CHOICES = [name for name, facts in METRICS.items() if facts.kind == "classify"]
HEADS = ("linear-probe",)
OF_TRAINING: dict[str, Any] = {
    "methods": [], "lr": AUTO, "epochs": 5, "batch_size": 16, "patience": 3, "train": None,
}  # fmt: skip
"""Parameters that mean nothing where nothing is trained, and what they are if nobody sets them."""
ARM = "arm"


@dataclass(frozen=True)
class Settings:
    """Checked parameters.

    Args:
        auto_lr: whether the learning rate is to suit the model.
        share: of the examples that is held out; None where validation data is given, or none is wanted.
        device: auto, cpu, mps, cuda or cuda:N.
        head: of a model that is left as it is; None fine-tunes all of it.
    """

    model: str
    train: Train
    methods: tuple[MethodUse, ...]
    metric: str
    auto_lr: bool
    share: float | None
    seed: int
    device: str
    calibrate: bool
    head: str | None = None


def check_settings(given: Mapping[str, Any]) -> Settings:
    """Parameters of `TextClassifier` as settings.

    Raises:
        SettingsError: with every problem found.
    """
    given = {name: _own_type(value) for name, value in given.items()}
    problems = [*_own_problems(given), *_train_problems(given["train"]), *_head_problems(given)]
    wrong = {problem.path for problem in problems}
    train = given["train"] if isinstance(given["train"], Mapping) else {}
    source = {
        "study": "classifier",
        "task": {"train": "given.csv"},
        "model": "minilm" if "model" in wrong else os.fspath(given["model"]),
        "train": {
            **{name: _own_type(value) for name, value in train.items() if name not in (*OWN, *UNFIT)},
            **{name: given[name] for name in OWN if (name, given[name]) != ("lr", AUTO)},
        },
        "seeds": [0],
        "arms": {ARM: {"methods": _plain(given["methods"])}},
        "compare": {"to": ARM},
        "execution": {"devices": "auto" if "device" in wrong else given["device"]},
    }
    try:
        study = load_study(source)
    except StudyError as error:
        raise SettingsError([*problems, *map(_in_own_words, error.problems)]) from None
    if problems:
        raise SettingsError(problems)
    return Settings(
        model=str(study.model),
        train=study.settings(ARM),
        methods=study.methods(ARM),
        metric=given["metric"],
        auto_lr=given["lr"] == AUTO,
        share=float(given["validation"]) if isinstance(given["validation"], Real) and given["validation"] else None,
        seed=given["seed"],
        device=study.execution.devices[0],
        calibrate=given["calibrate"],
        head=given["head"],
    )


def plain_parameters(given: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they can be saved: without texts, and with a folder's name in place of where it lies.

    Args:
        settings: of the fit that they led to.
    """
    plain = {name: _own_type(value) for name, value in given.items() if name != "device"}
    train, validation = plain["train"], plain["validation"]
    return {
        **plain,
        "model": settings["model"]["name"],
        "methods": settings["methods"],
        "train": None if train is None else {name: _own_type(value) for name, value in train.items()},
        "validation": validation if isinstance(validation, int | float) else None,
    }


def _own_type(value: Any) -> Any:
    """numpy's numbers, which grids are made of, as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _plain(methods: Any) -> Any:
    """A list where a sequence was given; anything else is for the schema to refuse."""
    return list(methods) if isinstance(methods, Sequence) and not isinstance(methods, str) else methods


def _own_problems(given: Mapping[str, Any]) -> list[Problem]:
    """What a study has no field for, or another."""
    validation, seed = given["validation"], given["seed"]
    none = validation is None or (isinstance(validation, Real) and validation == 0)
    checks = {
        "metric": (given["metric"] in CHOICES, one_of(CHOICES)),
        "seed": (_is_whole(seed) and 0 <= seed <= LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED:,}"),
        "calibrate": (isinstance(given["calibrate"], bool), "True or False"),
        "progress": (isinstance(given["progress"], bool), "True or False"),
        "device": (isinstance(given["device"], str), "auto, cpu, mps, cuda or cuda:1"),
        "validation": (
            none or (not validation <= 0 and validation < 1 if isinstance(validation, Real) else _is_pair(validation)),
            "a share below 1, such as 0.1; a pair (texts, labels); or 0 for none",
        ),
    }
    found = [
        Problem(WHERE, name, f"found {shown(given[name])}; allowed: {allowed}.")
        for name, (fits, allowed) in checks.items()
        if not fits
    ]
    if given["calibrate"] is True and none:
        reason = "the temperature is found on validation examples, and validation is off; give it a share such as 0.1."
        found.append(Problem(WHERE, "calibrate", reason))
    return [*found, *_model_problems(given["model"])]


def _head_problems(given: Mapping[str, Any]) -> list[Problem]:
    """What means nothing where the model is not trained."""
    head = given["head"]
    if head is None:
        return []
    if head not in HEADS:
        allowed = f"{one_of(HEADS)}, or None to fine-tune the whole model"
        return [Problem(WHERE, "head", f"found {shown(head)}; allowed: {allowed}.")]
    set_to = [name for name, usual in OF_TRAINING.items() if _plain(given[name]) != usual]
    reason = f"head={head!r} leaves the model as it is, so this does nothing; remove it, or `head`."
    found = [Problem(WHERE, name, reason) for name in set_to]
    validation = given["validation"]
    if validation is None or (isinstance(validation, Real) and validation == 0):
        why = f"head={head!r} chooses how strong its regression is on validation examples; give it a share such as 0.1."
        found.append(Problem(WHERE, "validation", why))
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def _model_problems(model: Any) -> list[Problem]:
    if not isinstance(model, str | os.PathLike) or not str(model):
        allowed = "`minilm`, a folder with a transformers model, or a hub id"
        return [Problem(WHERE, "model", f"found {shown(model)}; allowed: {allowed}.")]
    try:
        preset = parse_preset(str(model))
    except ModelError:
        return []  # the study's own check tells
    if preset is None:
        return []
    reason = f"'{model}' is a preset that is trained from scratch and has no tokenizer; a classifier starts from a checkpoint"
    return [Problem(WHERE, "model", f"{reason}. In a study presets can be trained with a tokenizer.")]


def _train_problems(train: Any) -> list[Problem]:
    if train is None:
        return []
    if not isinstance(train, Mapping):
        return [Problem(WHERE, "train", f"found {shown(train)}; allowed: a mapping such as {{'warmup': 0.06}}.")]
    own = [Problem(WHERE, f"train.{name}", f"give it as TextClassifier({name}=...)") for name in OWN if name in train]
    return own + [Problem(WHERE, f"train.{name}", reason) for name, reason in UNFIT.items() if name in train]


def _in_own_words(problem: Problem) -> Problem:
    """A study's problem in the words of the constructor."""
    path = problem.path.removeprefix(f"arms.{ARM}.").replace("execution.devices", "device")
    if path.removeprefix("train.") in OWN:
        path = path.removeprefix("train.")
    return replace(problem, where=WHERE, path=path)
