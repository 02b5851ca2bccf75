"""Tasks: their data, splits, labels, metrics and batches. Nothing here imports torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtune.tasks.catalogue import load_task, task_names
    from fairtune.tasks.registry import RegisteredTask, register_task, registered_tasks
    from fairtune.tasks.task import Split, Task, TaskFacts

_HOMES = {
    **dict.fromkeys(["load_task", "task_names"], "fairtune.tasks.catalogue"),
    **dict.fromkeys(["RegisteredTask", "register_task", "registered_tasks"], "fairtune.tasks.registry"),
    **dict.fromkeys(["Split", "Task", "TaskFacts"], "fairtune.tasks.task"),
}
__all__ = [
    "RegisteredTask",
    "Split",
    "Task",
    "TaskFacts",
    "load_task",
    "register_task",
    "registered_tasks",
    "task_names",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what needs one of them need not wait for all."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fairtune.tasks' has no attribute {name!r}")
