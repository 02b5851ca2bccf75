"""Trials that Optuna's samplers draw, behind the extra `fairtune[optuna]`. The only file that knows Optuna."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.settings.tune import Point, Range, Space, Tune

MISSING = (
    "tune.sampler: {sampler} is one of Optuna's, which is not installed; `pip install 'fairtune[optuna]'`, or use "
    "`sampler: random`."
)


def draw_evenly(space: Space, count: int, seed: str) -> list[Point]:
    """So many points that fill a space more evenly than chance does: a quasi-random sequence."""
    study = _study("qmc", seed, lower_is_better=False)
    found: list[Point] = []
    for _ in range(count):
        point = _ask(study, space)[1]
        if point not in found:
            found.append(point)
    return found


def propose_points(
    tune: Tune, methods: Sequence[str], score: Callable[[Point], float | None], lower_is_better: bool
) -> list[Point]:
    """An arm's points so far and the next: each drawn by what those before it scored, all over again each time.

    All arms begin with the same points, since they draw from the same seed.

    Args:
        score: of a point that was tried; None of one that failed. Raises `KeyError` of one that was not.
    """
    space = {**tune.shared, **tune.own(tuple(methods))}
    study = _study(tune.sampler, f"{tune.trials}", lower_is_better)
    found: list[Point] = []
    for _ in range(tune.trials):
        asked, point = _ask(study, space)
        if point not in found:
            found.append(point)
        try:
            value = score(point)
        except KeyError:
            break
        if value is None:
            study.tell(asked, state=_optuna(tune.sampler).trial.TrialState.FAIL)
        else:
            study.tell(asked, value)
    return found


def _ask(study: Any, space: Space) -> tuple[Any, Point]:
    asked = study.ask()
    point: Point = {}
    for name, values in space.items():
        if isinstance(values, Range):
            drawn = asked.suggest_float(name, values.low, values.high, log=values.log)
            point[name] = values.rounded(drawn)
        else:
            point[name] = values[asked.suggest_categorical(name, list(range(len(values))))]
    return asked, point


def _study(sampler: str, seed: str, lower_is_better: bool) -> Any:
    optuna = _optuna(sampler)
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big")
    kinds: dict[str, Any] = {
        "qmc": lambda: optuna.samplers.QMCSampler(scramble=True, seed=number, warn_independent_sampling=False),
        "tpe": lambda: optuna.samplers.TPESampler(seed=number),
        "gp": lambda: optuna.samplers.GPSampler(seed=number, deterministic_objective=False),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of its samplers are marked as experimental
        return optuna.create_study(direction="minimize" if lower_is_better else "maximize", sampler=kinds[sampler]())


def _optuna(sampler: str) -> Any:
    try:
        import optuna
    except ImportError:
        raise FairtuneError(MISSING.format(sampler=sampler)) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
