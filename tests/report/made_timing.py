"""A timing session made by hand: rounds in which each arm takes as long as a test says, give or take a little."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.report.made_card import made_card
from tests.report.made_ledger import STUDY, MadeLedger, environment

from fairtune.ledger.timings import AGAIN, write_session


def made_session(
    seconds: Mapping[str, float],
    *,
    again: float = 1.0,
    rounds: int = 20,
    noise: float | Mapping[str, float] = 0.002,
    key: str = "{arm}-0",
    frozen: tuple[str, ...] = (),
    **changes: Any,
) -> dict[str, Any]:
    """A session of arms, the first of which is the reference.

    Args:
        seconds: of a step, by arm.
        again: the second copy's step as a multiple of the reference's.
        noise: of each turn, as a share; by arm, if they differ.
        key: of an arm's first run.
        frozen: arms whose queries and keys are frozen.
    """
    reference = next(iter(seconds))
    means = {**seconds, AGAIN: again * seconds[reference]}
    draw = np.random.default_rng(0)
    return {
        "format": 1,
        "study": STUDY,
        "plan": "0123456789abcdef",
        "time": 1_800_000_000.0,
        "device": "cpu",
        "threads": 1,
        "environment": environment(0),
        "reference": reference,
        "keys": {arm: key.format(arm=arm) for arm in seconds},
        "arms": {arm: _facts(arm in frozen) for arm in means},
        "warm_up": 2,
        "rounds": [_round(means, noise, draw) for _ in range(rounds)],
        "seconds": 12.0,
        "samples": [_sample(foreign) for foreign in (0.1, 0.9, 0.2)],
        **changes,
    }


def time_ledger(made: MadeLedger, seconds: Mapping[str, float], **more: Any) -> Path:
    """Put a session into a made study."""
    return write_session(made.runs / STUDY, made_session(seconds, **more))


def _facts(frozen: bool) -> dict[str, Any]:
    card = made_card(frozen=frozen, changed=frozen)
    return {
        "costs": card["costs"], "parameters": card["parameters"], "steps": 20, "steps_per_epoch": 10, "epoch_seconds": 0.0,
        "memory": {"peak_bytes": 1_400_000_000},
    }  # fmt: skip


def _round(means: Mapping[str, float], noise: float | Mapping[str, float], draw: np.random.Generator) -> dict[str, Any]:
    own = {arm: noise.get(arm, 0.002) if isinstance(noise, Mapping) else noise for arm in means}
    turns = {arm: [_turn(mean * float(draw.normal(1, own[arm]))) for _ in range(2)] for arm, mean in means.items()}
    return {"apart": False, "steps": 1, "order": list(means), "turns": turns}


def _turn(seconds: float) -> dict[str, float]:
    shares = {"data": 0.01, "forward": 0.3, "backward": 0.6, "optimizer": 0.08, "method": 0.0}
    own = {name: share * 2 * seconds for name, share in shares.items()}
    return {"wall": 2 * seconds, "processor": seconds, "tokens": 448, **own}


def _sample(foreign: float) -> dict[str, Any]:
    return {
        "seconds": 1.0, "load": 1.5, "foreign_cores": foreign, "stolen_cores": 0.0, "mhz": 2400, "celsius": None,
        "foreign_processes": 1, "gpus": [],
    }  # fmt: skip
