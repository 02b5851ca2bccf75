"""A plug-in whose steps take their time until a test has interfered with a run in its middle, on a quick machine too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtune.core.plugins import allow_files

SECONDS, UNTIL = "TOY_STEP_SECONDS", "TOY_STEPS_SLOW_UNTIL"
"""In a run's environment: how long a step takes, and the file that ends it."""
_SOURCE = f'''
import os
import time
from pathlib import Path

from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register

class Config(MethodConfig):
    """A method that only takes its time, where it is told to."""

@register
class Slow(Method):
    name, config_class = "slow", Config

    def after_step(self, *_):
        if not Path(os.environ.get("{UNTIL}", "no such file")).exists():
            time.sleep(float(os.environ.get("{SECONDS}", "0")))
'''


def with_slow_steps(source: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A study's source whose every arm has the method.

    Args:
        folder: of the study file.
    """
    (folder / "takes_time.py").write_text(_SOURCE)
    allow_files([str((folder / "takes_time.py").resolve())])
    arms = {name: {**arm, "methods": ["slow"]} for name, arm in source["arms"].items()}
    return {**source, "arms": arms, "plugins": ["takes_time"]}
