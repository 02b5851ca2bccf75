"""What a study knows of the executor that performs its runs: jobs go in, events come out, and it can be stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from fairtune.settings.execution import Execution
from fairtune.study.run_spec import RunSpec

STARTED, PROGRESS, ENDED, REFUSED = "started", "progress", "ended", "refused"
NOTE = "note"


@dataclass(frozen=True)
class JobEvent:
    """Something that happened to a job.

    Args:
        type: `started`; `progress`, with what `execution/run.py` reports; `ended`, with the `result` of the run, finished or
            failed; `refused`, with the `reason` why the run could not be begun. A study ignores others; monitors show the
            `text` of a `note`.
        values: plain data, as JSON can hold it.
    """

    job: RunSpec
    type: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_last(self) -> bool:
        """Whether nothing more will happen to the job."""
        return self.type in (ENDED, REFUSED)


class Executor(Protocol):
    """Performs jobs somewhere, one after the other or side by side.

    - Everything about a run is recorded in the folder that its job names, by the process that performs it; only events go back.
    - A lost `progress` costs nothing, but each job gets exactly one last event. So an executor notices when a process dies without
      one, records the failure (`record_failure`) and yields it. A run that was stopped has no last event: the next
      `fairtune run` goes on with it.
    - An executor whose jobs can go on without this process has a method `interrupted(by_user: bool)` too, which is called before
      `stop` when the study is interrupted, and decides what becomes of them; see `remote.py`.
    """

    def submit(self, jobs: Sequence[RunSpec]) -> None:
        """Take jobs, to be begun in this order. Returns at once."""

    def events(self) -> Iterator[JobEvent]:
        """What happens, as it happens, until every job has had its last event; one that fails does not hold up the others."""

    def cancel_waiting(self) -> None:
        """Forget the jobs that have not begun; those under way go on."""

    def stop(self) -> None:
        """End all work, and return when it has ended. Jobs under way save their state first. Called once, also when all is done."""


ExecutorFactory = Callable[[Execution, Path], Executor]
"""Makes the executor of one study, from the study's execution settings and its folder."""
FACTORIES = {
    "local": "fairtune.execution.executors.local:make_local_executor",
    "slurm": "fairtune.execution.executors.slurm:make_slurm_executor",
    "ray": "fairtune.execution.executors.ray:make_ray_executor",
}
"""By `execution.on`, where the factory is; each is imported when it is chosen."""


def make_executor(execution: Execution, home: Path) -> Executor:
    """The executor that a study asks for."""
    module, _, name = FACTORIES[execution.on].partition(":")
    factory: ExecutorFactory = getattr(import_module(module), name)
    return factory(execution, home)
