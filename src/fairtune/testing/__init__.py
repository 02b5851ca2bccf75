"""For authors of plug-ins: the checks that fairtune's own methods pass, on a tiny model and a toy task. Needs no pytest.

toy = make_toy(tmp_path, plugins=["my_module"])
check_method(toy, "my_method", idle={"strength": 0})
"""

from fairtune.testing.checks import (
    check_composition,
    check_idle,
    check_method,
    check_resume,
    check_state,
    check_task,
    toy_use,
)
from fairtune.testing.runs import ToyStudy, digests, make_toy, perform_apart, perform_here
from fairtune.testing.toy import TaskFiles, make_tiny_model, make_tiny_task, make_tokenizer

__all__ = [
    "TaskFiles",
    "ToyStudy",
    "check_composition",
    "check_idle",
    "check_method",
    "check_resume",
    "check_state",
    "check_task",
    "digests",
    "make_tiny_model",
    "make_tiny_task",
    "make_tokenizer",
    "make_toy",
    "perform_apart",
    "perform_here",
    "toy_use",
]
