"""The process in which arms are timed: prepares them all, then steps them in turns until its standard input ends.

Started as `python -m fairtune.execution.stopwatch.worker DEVICE THREADS`; the first line of its input is the jobs, its output one
message a line. A round is a random order of the arms, forwards and then backwards (ABBA for two), so that slow drift cancels;
every arm steps through the same batches, as its runs would.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from fairtune.core.console import make_messages_printable, own_pipes
from fairtune.core.errors import FairtuneError, RunFailure
from fairtune.execution.failures import failure_reason
from fairtune.study.run_spec import RunSpec

TURN_SECONDS = 0.1
"""A turn has as many steps as this takes, one at least: shorter ones would measure the clock and the change of models."""
WARM_UP_ROUNDS, WARM_UP_SECONDS = 2, 4.0
"""Rounds before the first that counts: so many at least, and for so long."""
LONGEST_WARM_UP = 4
WALL, PROCESSOR = "wall", "processor"
PARTS = ("data", "forward", "backward", "optimizer", "method")


def main() -> None:
    device, threads = sys.argv[1], int(sys.argv[2])
    inbox, outbox = own_pipes()
    make_messages_printable()
    messages = os.fdopen(outbox, "w", encoding="utf-8")

    def send(kind: str, **values: Any) -> None:
        messages.write(json.dumps({"type": kind, **values}) + "\n")
        messages.flush()

    lines = os.fdopen(inbox, encoding="utf-8")
    jobs = {name: RunSpec(**fields) for name, fields in json.loads(lines.readline()).items()}
    ended = threading.Event()
    threading.Thread(target=_wait_for_end, args=(lines, ended), daemon=True).start()
    try:
        import torch

        torch.set_num_threads(threads)
        arms = prepare_arms(jobs, device)
        send("ready", arms={arm.name: arm.describe() for arm in arms})
        for number, found in enumerate(rounds(arms, ended)):
            send("round", number=number, **found)
        send("done", memory={arm.name: arm.memory for arm in arms})
    except BrokenPipeError:
        pass  # no one listens any more
    except (FairtuneError, RunFailure) as error:
        send("failed", reason=str(error))
    except Exception as error:
        send("failed", reason=failure_reason(error))


def _wait_for_end(lines: IO[str], ended: threading.Event) -> None:
    lines.read()
    ended.set()


@dataclass
class TimedArm:
    """One arm that is ready to be stepped."""

    name: str
    run: Any
    card: Mapping[str, Any]
    memory: dict[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        from fairtune.execution.cost_estimate import epoch_seconds

        run = self.run
        return {
            "costs": self.card["costs"],
            "parameters": self.card["parameters"],
            "steps": run.total_steps,
            "steps_per_epoch": run.steps_per_epoch,
            "epoch_seconds": epoch_seconds(run),
        }

    def turn(self, steps: int) -> dict[str, float]:
        """Do so many optimizer steps; the seconds of all of them, by kind of clock and by part."""
        from fairtune.training.memory import describe_memory, watch_memory

        run, clock = self.run, self.run.clock
        clock.seconds.clear(), clock.processor.clear(), clock.parts.clear()
        held = _allocated(run.device)
        watch_memory(run.device)
        tokens = 0
        for _ in range(steps):
            go_on_training(run)
            before = run.progress.tokens + run.progress.padding
            run.advance()
            tokens += run.progress.tokens + run.progress.padding - before
        spent = {name: clock.seconds.get(name, 0.0) for name in ("data", "step", "method")}
        found = describe_memory(run)
        peak = found["peak_bytes"] - held + own_bytes(run) if run.device.type == "cuda" else found["peak_bytes"]
        if peak > self.memory.get("peak_bytes", 0):
            self.memory = {**found, "peak_bytes": peak}
        return {
            WALL: sum(spent.values()),
            PROCESSOR: sum(clock.processor.get(name, 0.0) for name in spent),
            "data": spent["data"],
            "method": spent["method"],
            "tokens": tokens,
            **clock.parts,
        }


def prepare_arms(jobs: Mapping[str, RunSpec], device: str) -> list[TimedArm]:
    """Every arm as its first run would be at step 0."""
    from fairtune.execution.prepare import prepare_run
    from fairtune.ledger.events import EventLog

    arms = []
    for name, job in jobs.items():
        job.run.path.mkdir(parents=True)
        try:
            ready = prepare_run(job, device, EventLog(job.run.events), lambda: None)
        except (FairtuneError, RunFailure) as error:
            raise RunFailure(f"arm {job.arm} cannot be timed: {error}") from None
        ready.run.clock.splits = ready.run.device.type == "cpu"
        ready.run.uncut = "all arms are on the device at once, and times of cut batches compare nothing"
        arms.append(TimedArm(name, ready.run, ready.card))
    return arms


def rounds(arms: Sequence[TimedArm], ended: threading.Event) -> Any:
    """Rounds until `ended` is set; the first ones are marked as warming up."""
    draw, steps, begun, number = random.Random(0), 1, time.monotonic(), 0
    while not ended.is_set():
        warm = number >= LONGEST_WARM_UP or (number >= WARM_UP_ROUNDS and time.monotonic() - begun >= WARM_UP_SECONDS)
        order = draw.sample(list(arms), len(arms))
        # a device that works ahead is taken apart in rounds of their own, which count for nothing else
        apart = warm and number % 4 == 0 and any(arm.run.device.type != "cpu" for arm in arms)
        found: dict[str, list[dict[str, float]]] = {arm.name: [] for arm in arms}
        for arm in [*order, *reversed(order)]:
            arm.run.clock.splits = apart or arm.run.device.type == "cpu"
            try:
                found[arm.name].append(arm.turn(steps))
            except RunFailure as failure:
                raise RunFailure(f"arm {arm.name} cannot be timed: {failure}") from None
        yield {"warm": warm, "apart": apart, "steps": steps, "order": [arm.name for arm in order], "turns": found}
        if number == 0:
            quickest = min(turn[WALL] for turns in found.values() for turn in turns)
            steps = max(1, round(TURN_SECONDS / max(quickest, 1e-4)))
        number += 1


def go_on_training(run: Any) -> None:
    """Skip what comes between training steps, and begin again after the last one."""
    now = run.progress
    if now.phase != "train" and now.step >= run.total_steps:
        run.progress = type(now)(memory=now.memory, largest_batch=now.largest_batch, micro_batch=now.micro_batch)
    run.progress.phase = "train"


def own_bytes(run: Any) -> int:
    """Bytes of a run's weights and optimizer state, where several runs share a device."""
    states = (value for state in run.optimizer.state.values() for value in state.values() if hasattr(value, "nbytes"))
    return int(sum(p.nbytes for p in run.model.parameters()) + sum(value.nbytes for value in states))


def _allocated(device: Any) -> int:
    import torch

    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


if __name__ == "__main__":
    main()
