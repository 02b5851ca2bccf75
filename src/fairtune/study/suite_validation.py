"""Is this suite file right? With each of its profiles, every study of it, and the files and models that those name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairtune.study.problems import Problem, StudyError
from fairtune.study.source import StudySource, Written, read_source
from fairtune.study.study_file import check_file, find_absences
from fairtune.study.suite_file import Suite, load_suite


@dataclass(frozen=True)
class CheckedSuite:
    """A suite that is right.

    Args:
        absent: what its studies name that is not on this machine, each once.
    """

    suite: Suite
    profiles: tuple[str, ...]
    absent: tuple[Problem, ...]


def is_suite(source: StudySource) -> bool:
    """Whether a file says of itself that it is a suite.

    Raises:
        FairtuneError: there is no such file, it cannot be read, or it is no YAML mapping.
    """
    return "suite" in read_source(source).data


def check_suite(source: StudySource) -> CheckedSuite:
    """Check a suite file with each of its profiles.

    Raises:
        StudyError: with every problem found, each once.
    """
    profiles = read_source(source, "suite").data.get("profiles")
    names = tuple(profiles) if isinstance(profiles, dict) else ()
    problems: list[Problem] = []
    suites: list[Suite] = []
    for profile in (None, *names):
        found: list[Problem] = []
        try:
            suite = load_suite(source, profile=profile)
        except StudyError as error:
            found = error.problems
        else:
            suites.append(suite)
            found = _of_studies(suite, _wrongs)
        told = {problem.message for problem in problems}
        called = "" if profile is None else f"profile {profile}: "
        problems += [Problem(one.where, called + one.path, one.message) for one in found if one.message not in told]
    if problems:
        raise StudyError(problems)
    absent = {problem.message: problem for suite in suites for problem in _of_studies(suite, find_absences)}
    return CheckedSuite(suites[0], names, tuple(absent.values()))


def _of_studies(suite: Suite, find: Callable[[StudySource], list[Problem]]) -> list[Problem]:
    return [problem for one in suite.studies for problem in find(_as_chosen(one.source))]


def _wrongs(source: StudySource) -> list[Problem]:
    try:
        check_file(source)
    except StudyError as error:
        return list(error.problems)
    return []


def _as_chosen(source: Written) -> Written:
    """A study as the suite has it: the other profiles of its file are none of the suite's."""
    found = source.copy()
    found.data.pop("profiles", None)
    return found
