"""What Ray performs on a node for a block: a process of our own, that ends with its task, saving its state if it can.

`python -m fairtune.execution.executors.ray.node_task PARENT SUBMISSION BLOCK` is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from fairtune.execution.executors.remote import node
from fairtune.ledger.node import NODE

LOOK_SECONDS = 0.5
STOP_SECONDS = 300.0
"""How long a run may take to save its state when it is cancelled."""


def perform_block(folder: str, block: int, on_gpu: bool) -> str:
    """Perform a block of a submission. Returns the exit code of the process that did: results are in the ledger."""
    import ray

    environment = {
        name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"
    }  # Ray's, of all its tasks
    environment[NODE] = f"ray-{ray.get_runtime_context().get_node_id()[:12]}"
    if not on_gpu:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    command = [sys.executable, "-m", __name__, str(os.getpid()), folder, str(block)]
    with (Path(folder) / f"block-{block}.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    try:
        while (code := process.poll()) is None:  # a wait for ever would not be interrupted when the task is cancelled
            time.sleep(LOOK_SECONDS)
        return str(code)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _end_with(parent: int) -> None:
    """Ray ends its workers with a signal that nobody can handle, and they leave their children behind."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    parent = int(sys.argv.pop(1))
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    return node.main()


if __name__ == "__main__":
    sys.exit(main())
