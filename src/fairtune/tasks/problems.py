"""All that is wrong with a task's data, collected while it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fairtune.core.errors import DataError
from fairtune.settings.file_task import SPLITS

Problem = tuple[str, str]
"""A field of the task, and what is wrong there; of a file, the message names it."""


class TaskError(DataError):
    """Everything that is wrong with a task's data."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        said = [message if field in SPLITS else f"task: {field}: {message}" for field, message in self.problems]
        super().__init__("\n".join(dict.fromkeys(said)))

    def as_json(self) -> list[dict[str, Any]]:
        return [{"path": f"task.{field}", "message": message} for field, message in self.problems]


class Problems:
    """What was found wrong so far."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    @contextmanager
    def about(self, field: str) -> Iterator[None]:
        """Collect what is raised, of this field unless it says another."""
        try:
            yield
        except TaskError as error:
            self.found += error.problems
        except DataError as error:
            self.found.append((field, str(error)))

    def refuse(self) -> None:
        if self.found:
            raise TaskError(self.found)
