"""A real Ray cluster of two nodes with one core each: it tells its address, and kills its second node when it is told to.

`python -m tests.cluster.ray_nodes` prints the address and the second node's id. A line on standard input kills that node, the end
of input ends it all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtune.execution.executors.ray import LOOPBACK, QUIET, STORE_BYTES

ROOT = Path(__file__).parents[2]


class RayNodes:
    """The two nodes.

    Args:
        second: what the node that can be killed calls itself.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address, self.second = self._line().split()

    def kill_second(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()
        assert self._line() == "killed"

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, f"the cluster ended with code {self._process.wait(60)}"
        return line


@contextmanager
def ray_nodes(**environment: str) -> Iterator[RayNodes]:
    """The cluster, with more variables for its processes."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    own = {
        **os.environ,
        **QUIET,
        LOOPBACK: "0",
        "RAY_AUTH_MODE": "disabled",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own | environment
    )  # fmt: skip
    with process:
        try:
            yield RayNodes(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def main() -> None:
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    second = cluster.add_node(**size)
    cluster.wait_for_nodes()
    print(cluster.address, f"ray-{second.node_id[:12]}", flush=True)
    for _ in sys.stdin:
        cluster.remove_node(second, allow_graceful=False)
        print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
