"""A real Slurm on this machine for tests: Debian's munged, slurmctld and two slurmd, on loopback, in a folder of their own.

`python -m tests.cluster.slurm_cluster` starts one and waits for Ctrl-C, and says how to use it; `--install` installs the packages.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")
PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
NODES = ("n1", "n2")
PARTITION, SHORT = "main", "short"
START_SECONDS = 30.0
SKIPPED = "tests on a real Slurm"
needs_slurm = pytest.mark.cluster


def why_not() -> str | None:
    """Why there can be no Slurm here; None where there can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PLACES) is None]
    if missing:
        return f"no Slurm on this machine (Debian's packages {', '.join(PACKAGES)}; `make cluster-test` installs them)"
    return None if os.geteuid() == 0 else "slurmd must be started by root"


def skip_as_one(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without Slurm, leave of all tests that need it a single one, which is skipped for them all."""
    needing = [item for item in items if item.get_closest_marker(needs_slurm.name)]
    if needing and (reason := why_not()) is not None:
        needing[0].add_marker(pytest.mark.skip(reason=f"{len(needing)} {SKIPPED}: {reason}"))
        config.hook.pytest_deselected(items=needing[1:])
        gone = set(needing[1:])
        items[:] = [item for item in items if item not in gone]


def _conf(folder: Path, ports: list[int], cores: int) -> str:
    node = f"NodeAddr=127.0.0.1 NodeHostname={socket.gethostname()} CPUs={cores} RealMemory=4000 State=UNKNOWN"
    nodes = "\n".join(f"NodeName={name} Port={port} {node}" for name, port in zip(NODES, ports[1:], strict=True))
    return f"""
ClusterName=fairtune
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
CommunicationParameters=NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=2,batch_sched_delay=0
PriorityType=priority/basic
ReturnToService=2
KillWait=10
MinJobAge=60
InactiveLimit=0
MailProg=/bin/true
SlurmdTimeout=30
{nodes}
PartitionName={PARTITION} Nodes={",".join(NODES)} Default=YES MaxTime=1-00:00:00 State=UP
PartitionName={SHORT} Nodes={NODES[0]} MaxTime=5 State=UP
"""


@dataclass
class SlurmCluster:
    """A Slurm that runs.

    Args:
        environment: for programs that are to use it.
    """

    folder: Path
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def ask(self, *order: str) -> str:
        """What a program of Slurm's answers."""
        done = subprocess.run(order, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{order}: {done.stderr}"
        return done.stdout

    def start(self, name: str, *order: str) -> None:
        log = (self.folder / f"{name}.out").open("ab")
        self.processes[name] = subprocess.Popen(
            order, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
        log.close()

    def start_node(self, name: str) -> None:
        self.start(name, "slurmd", "-D", "-N", name, "-f", str(self.folder / "slurm.conf"))

    def kill_node(self, name: str) -> None:
        """The node is gone, as after a power cut, with all that ran there."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        for order in processes_with(f"SLURMD_NODENAME={name}", f"SLURM_CONF={self.folder}"):
            os.kill(order, signal.SIGKILL)

    def until(self, what: Any, seconds: float = 60.0) -> Any:
        """Wait for something to be so."""
        deadline = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < deadline, f"{self.ask('squeue', '--all')}\n{self.ask('sinfo', '-R')}"
            time.sleep(0.2)
        return found

    def stop(self) -> None:
        with_jobs = self.processes.get("slurmctld")
        if with_jobs is not None and with_jobs.poll() is None:
            subprocess.run(["scancel", "--me"], env=self.environment, check=False, timeout=30, capture_output=True)
        for name in reversed(list(self.processes)):
            self.processes[name].terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for left in processes_with(f"SLURM_CONF={self.folder}"):
            os.kill(left, signal.SIGKILL)


def processes_with(*settings: str) -> list[int]:
    """Processes whose environment has all of these, at the beginning of a variable."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            lines = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if all(any(line.startswith(setting.encode()) for line in lines) for setting in settings):
            found.append(int(place.parent.name))
    return [pid for pid in found if pid != os.getpid()]


@contextmanager
def real_slurm() -> Iterator[SlurmCluster]:
    """A Slurm of two nodes that answers; all of it ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)
    (folder / "state").mkdir()
    (folder / "munge").mkdir(mode=0o755)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    cores = max(2, os.cpu_count() or 2)
    (folder / "slurm.conf").write_text(_conf(folder, _free_ports(1 + len(NODES)), cores))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": PLACES}
    cluster = SlurmCluster(folder, environment)
    munge = folder / "munge"
    try:
        cluster.start(
            *("munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket"),
            *(f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--num-threads=2"),
        )
        cluster_until(lambda: (munge / "socket").exists(), cluster)
        cluster.start("slurmctld", "slurmctld", "-D", "-c", "-f", str(folder / "slurm.conf"))
        for name in NODES:
            cluster.start_node(name)
        cluster_until(lambda: _idle(cluster), cluster)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def cluster_until(what: Any, cluster: SlurmCluster) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not what():
        if time.monotonic() > deadline:
            logs = "\n".join(f"{log}:\n{log.read_text()[-2000:]}" for log in sorted(cluster.folder.glob("*.log")))
            pytest.fail(f"Slurm does not start\n{logs}")
        time.sleep(0.1)


def _idle(cluster: SlurmCluster) -> bool:
    order = ["sinfo", "-h", "-N", "-p", PARTITION, "-o", "%T"]
    done = subprocess.run(order, env=cluster.environment, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.split() == ["idle"] * len(NODES)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def install() -> str | None:
    """Install Debian's packages, unless they are there. Returns what is to be done by hand."""
    if why_not() is None:
        return None
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return f"install {', '.join(PACKAGES)} as root (Debian: `apt-get install {' '.join(PACKAGES)}`)."
    for words in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        if subprocess.run([apt, *words], check=False).returncode:
            return f"`apt-get {' '.join(words)}` failed; install the packages by hand."
    return why_not()


def main() -> None:
    if sys.argv[1:] == ["--install"]:
        sys.exit(install())
    if (reason := why_not()) is not None:
        sys.exit(reason)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), real_slurm() as cluster:
        print(f"export SLURM_CONF={cluster.folder / 'slurm.conf'}\nexport PATH={PLACES}", flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
