"""Tasks: their data, splits, labels, metrics and batches. Nothing here imports torch."""

from fairtune.tasks.catalogue import load_task, task_names
from fairtune.tasks.registry import RegisteredTask, register_task, registered_tasks
from fairtune.tasks.task import Split, Task, TaskFacts

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
