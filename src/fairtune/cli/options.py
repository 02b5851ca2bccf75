"""Options that say what a study file says: methods and a task, refused in the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fairtune.core.errors import nearest, one_of
from fairtune.methods.arms import named_arms
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import registered
from fairtune.settings.file_task import FileTask
from fairtune.study.problems import Problem, StudyError
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import YamlProblem, parse_yaml

ARM = "inspected"
METHOD = re.compile(rf"arms\.{ARM}\.methods\[(\d+)\]\.?(.*)")


def read_methods(options: Sequence[str]) -> tuple[MethodUse, ...]:
    """Methods, in the order given.

    Args:
        options: named arms, methods by name, or methods with their settings in YAML.

    Raises:
        StudyError: with every problem found.
    """
    problems: list[Problem] = []
    entries: list[tuple[str, Any]] = []
    for option in options:
        try:
            entries += [(f"--method {option}", use) for use in _entries(option)]
        except StudyError as error:
            problems += error.problems
    try:
        study = load_study(_study(methods=[use for _, use in entries]))
    except StudyError as error:
        raise StudyError(problems + [_as_option_problem(problem, entries) for problem in error.problems]) from None
    if problems:
        raise StudyError(problems)
    return study.methods(ARM)


def read_task(option: str, called: str = "--task") -> str | FileTask:
    """A task by its name, or the user's own files as a study file gives them.

    Args:
        called: what messages call the option.
    """
    where = f"{called} {option}"
    try:
        return load_study(_study(task=_yaml(where, option))).task
    except StudyError as error:
        raise StudyError([Problem(where, p.path.removeprefix("task."), p.message) for p in error.problems]) from None


def _entries(option: str) -> Sequence[Any]:
    if option in (arms := named_arms()):
        if arms[option].learner is not None:
            message = f"'{option}' is a simple baseline, which is not fine-tuned and has no methods; choose a method"
            raise StudyError([Problem(f"--method {option}", "", message)])
        return arms[option].uses
    where = f"--method {option}"
    value = _yaml(where, option)
    if isinstance(value, str) and value not in registered():
        known = [*registered(), *(name for name, arm in arms.items() if arm.learner is None)]
        raise StudyError(
            [
                Problem(
                    where, "", f"no method or named arm '{value}'; there are: {one_of(known)}.{nearest(value, known)}"
                )
            ]
        )
    return [value]


def _yaml(where: str, text: str) -> Any:
    try:
        return parse_yaml(text).data
    except YamlProblem as problem:
        raise StudyError([Problem(where, "", f"not valid YAML: {problem.message}")]) from None


def _study(methods: Sequence[Any] = (), task: Any = "any") -> dict[str, Any]:
    """The smallest study with these parts, so that its schema reads them."""
    return {
        "study": ARM,
        "task": task,
        "model": "any",
        "arms": {ARM: {"methods": list(methods)}},
        "compare": {"to": ARM},
    }


def _as_option_problem(problem: Problem, entries: Sequence[tuple[str, Any]]) -> Problem:
    """A problem of that study as a problem of the option that caused it."""
    found = METHOD.fullmatch(problem.path)
    return Problem(entries[int(found[1])][0], found[2], problem.message) if found else problem
