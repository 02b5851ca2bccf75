"""Arms that the command line takes out of a study: not what the others are compared to, nor the control of one that stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairtune.core.errors import one_of
from fairtune.study.added_arms import stated_settings
from fairtune.study.audit import find_controls
from fairtune.study.problems import Problem, StudyError
from fairtune.study.schema import Study
from fairtune.study.source import Written


def require_reference(written: Written) -> None:
    """Refuse to take out what the others are compared to.

    Raises:
        StudyError: names the arm, and the way on.
    """
    arms, compare = written.data.get("arms"), written.data.get("compare") or {}
    to = compare.get("to", "baseline") if isinstance(compare, dict) else None
    if isinstance(arms, dict) and isinstance(to, str) and to in written.removed and to not in arms:
        message = (
            f"'{to}' is what the other arms are compared to; keep it, or name another with `--set compare.to=NAME`"
        )
        raise StudyError([Problem(written.removed[to][0], "", message)])


def require_controls(study: Study, written: Written, load: Callable[[dict[str, Any]], Study]) -> None:
    """Refuse to take out the control of an arm that stays: its settings and its methods could not be told apart any more.

    A study with `controls: true` gets it back.

    Args:
        load: checks the data of a study.

    Raises:
        StudyError: names the arms.
    """
    gone = {name: was for name, (_, was) in written.removed.items() if name not in study.arms}
    if not gone or study.controls:
        return
    try:
        whole = load({**written.data, "arms": {**written.data["arms"], **gone}})
    except StudyError:
        return  # what was taken out was wrong in itself
    before = find_controls({arm: stated_settings(whole, arm) for arm in whole.arms}, whole.compare.to)
    after = find_controls({arm: stated_settings(study, arm) for arm in study.arms}, study.compare.to)
    problems = []
    for name in gone:
        without = [arm for arm in study.arms if before[arm] == name and after[arm] is None]
        if without:
            many = "its" if len(without) == 1 else "their"
            message = (
                f"'{name}' is the control of {one_of(without)}: without it {many} methods and settings cannot be told apart; "
                f"take {'that arm' if len(without) == 1 else 'those arms'} out too, or keep it"
            )
            problems.append(Problem(written.removed[name][0], "", message))
    if problems:
        raise StudyError(problems)
