"""Tasks: their data, splits, labels, metrics and batches. Nothing here imports torch."""

from fairtune.tasks.catalogue import load_task, task_names
from fairtune.tasks.task import Split, Task, TaskFacts

__all__ = ["Split", "Task", "TaskFacts", "load_task", "task_names"]
