"""With this folder on PYTHONPATH, every run of this Python sleeps `FAIRTUNE_SLEEP` seconds instead of training, on any machine.

All else is real: the executor, its workers with all they import, locks, leases, and what a finished run leaves on the disk. The
result has `slept`: when the run began and ended, and in which process.
"""

from __future__ import annotations

import os
import sys
import time
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

WHERE, SLICE = "fairtune.execution.run", 0.05


class _Put(MetaPathFinder):
    """Changes one module as it is imported."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == WHERE else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                module.perform_run = _sleep  # type: ignore[attr-defined]

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _sleep(job: Any, _: str, check_stop: Any, report: Any) -> dict[str, Any]:
    began, folder = time.time(), job.run
    folder.begin(job.as_json())
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from fairtune.core.files import read_sealed
    from fairtune.ledger.seals import close_run
    from growth import LedgerSize, record_run

    while (left := began + float(os.environ["FAIRTUNE_SLEEP"]) - time.time()) > 0:
        check_stop()
        time.sleep(min(left, SLICE))
        report({"phase": "train", "step": 1, "steps": 2})
    record_run(folder, job.as_json(), LedgerSize(1, 1, examples=60, steps=2))
    result = {**read_sealed(folder.result), "slept": [began, time.time(), os.getpid()]}
    close_run(folder, job.key, result)
    folder.clear_scratch()
    return result


if "FAIRTUNE_SLEEP" in os.environ:
    sys.meta_path.insert(0, _Put())
