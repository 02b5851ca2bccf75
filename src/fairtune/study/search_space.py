"""The space that a study's arms are tuned over: what is wrong with it, and the points that are drawn from it.

Points are drawn once, from the space itself, and shared by all arms: nobody gets luckier ones, and nobody can draw again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from fairtune.core.errors import nearest, one_of, shown
from fairtune.methods.config import MethodUse
from fairtune.methods.layerwise_lr import LayerwiseLRConfig
from fairtune.methods.registry import parse_method_use, registered
from fairtune.settings.sections import UNUSED, Train
from fairtune.settings.tune import DATA, FIXED, OPTUNA, Point, Range, Space, Tune, Values
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.settings.values import MOST_RUNS
from fairtune.study.audit import is_tuned
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.corpora import is_text


def tune_problems(study: Study, origins: Origins) -> list[Problem]:
    """What is wrong with a study's `tune`, as far as the file alone tells."""
    tune = study.tune
    if tune is None:
        return []
    found = [
        *_space_problems(study, tune),
        *_size_problems(study, tune),
        *_budget_problems(tune),
        *_length_problems(study, tune),
        *_sample_problems(study, tune),
        *_rate_problems(study, tune),
    ]
    if not any(is_tuned(study.learner(arm)) for arm in study.arms):
        found.append(
            (("tune",), "no arm is trained, so there is nothing to tune; simple baselines choose for themselves")
        )
    both = sorted(set(tune.seeds) & set(study.seeds))
    if both:
        seeds = f"{'seed' if len(both) == 1 else 'seeds'} {', '.join(map(str, both[:5]))}"
        found.append(
            (
                ("tune", "seeds"),
                f"{seeds} would also be reported, so that what is chosen would be chosen by what is reported; name others, or give "
                f"their number alone, `seeds: {len(tune.seeds)}`",
            )
        )
    return [Problem(origins.of(path), dotted(path), message) for path, message in found]


def _rate_problems(study: Study, tune: Tune) -> Iterator[tuple[Path, str]]:
    for arm in study.arms if "lr" in tune.space else ():
        for use in study.methods(arm):
            if isinstance(use.config, LayerwiseLRConfig) and use.config.absolute:
                yield (
                    ("arms", arm, "methods"),
                    "the groups of layerwise_lr state every learning rate, so `tune.space.lr` changes nothing here; give `scale` "
                    "instead of `lr` in a group, or take lr out of the space",
                )


def tunable_fields(kind: str) -> list[str]:
    """The fields of `train` that a space may hold for a kind of task."""
    return [name for name in Train.model_fields if name not in (*DATA, *FIXED) and name not in UNUSED[kind]]


def _space_problems(study: Study, tune: Tune) -> Iterator[tuple[Path, str]]:
    kind = TEXT if is_text(study.task) else "classify"
    fields = tunable_fields(kind)
    used = {use.name: use for arm in study.arms for use in study.methods(arm)}
    for name, values in tune.space.items():
        path: Path = ("tune", "space", name)
        method, dot, field = name.partition(".")
        if not dot:
            if name in DATA:
                yield (
                    path,
                    "decides what is learned from, which is the same for all arms; it can stand in `tune.budget`",
                )
            elif name not in fields:
                hint = f" A method's own field is METHOD.FIELD.{nearest(name, fields)}"
                yield path, f"unknown field; allowed: {one_of(fields)}.{hint}"
            else:
                yield from (
                    (path, reason) for reason in _value_problems(values, lambda value, name=name: _train(name, value))
                )
        elif method not in registered():
            yield (
                path,
                f"unknown method '{method}'; allowed: {one_of(list(registered()))}.{nearest(method, list(registered()))}",
            )
        elif field not in registered()[method].config_class.model_fields:
            known = list(registered()[method].config_class.model_fields)
            yield path, f"'{method}' has no field '{field}'; allowed: {one_of(known)}.{nearest(field, known)}"
        elif method not in used:
            others = f"; methods of its arms: {one_of(list(used))}" if used else "; none of its arms has a method"
            yield path, f"no arm of the study has the method '{method}', so there is nothing to choose{others}"
        else:
            use = used[method]
            yield from (
                (path, reason)
                for reason in _value_problems(values, lambda value, use=use, field=field: with_field(use, field, value))
            )


def _value_problems(values: Values | Range, read: Any) -> Iterator[str]:
    ends = (values.low, values.high) if isinstance(values, Range) else values
    for value in ends:
        try:
            read(value)
        except (ValidationError, PydanticCustomError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.message()
            yield f"found {shown(value)}, which this field does not take: {reason[0].lower()}{reason[1:]}"
            return


def _train(name: str, value: Any) -> None:
    Train.model_validate({name: value})


def with_field(use: MethodUse, field: str, value: Any) -> MethodUse:
    """A method with another value in one of its fields."""
    given = use.config.model_dump(mode="json", exclude_unset=True)
    return parse_method_use({use.name: {**given, field: value}})


def _size_problems(study: Study, tune: Tune) -> Iterator[tuple[Path, str]]:
    if tune.sampler == "grid":
        size = space_size(tune.space)
        if size is None:
            yield ("tune", "sampler"), "a range has no grid; list its values, or use `sampler: random`"
        elif size > tune.trials:
            yield (
                ("tune", "trials"),
                f"the grid has {size:,} points, trials is {tune.trials:,}; raise it, or use `sampler: random`",
            )
    count = len(study.arms) * tune.trials * len(tune.seeds)
    if count > MOST_RUNS:
        yield ("tune", "trials"), f"{count:,} runs of trials; a study has at most {MOST_RUNS:,}"
    if tune.sampler in OPTUNA and tune.halving is not None:
        yield (
            ("tune", "halving"),
            f"needs all trials drawn beforehand; use `sampler: random` instead of {tune.sampler}, or leave it out",
        )


def _budget_problems(tune: Tune) -> Iterator[tuple[Path, str]]:
    for name in tune.cheaper:
        if name in tune.space:
            yield ("tune", "budget", name), "is in the space too; keep one of the two"


def _length_problems(study: Study, tune: Tune) -> Iterator[tuple[Path, str]]:
    """`steps` replace `epochs` wherever both stand, so that one of them would be tried in vain."""
    arms = [arm for arm in study.arms if getattr(study.arms[arm], "steps", None) is not None]
    if "epochs" in tune.space:
        if "steps" in tune.space or "steps" in tune.cheaper:
            yield ("tune", "space", "epochs"), "`steps` would replace it; keep one of the two"
        elif arms:
            yield ("tune", "space", "epochs"), f"arm '{arms[0]}' has `steps`, which replace it; remove one of the two"
    elif "steps" in tune.space and "epochs" in tune.cheaper:
        yield ("tune", "budget", "epochs"), "`steps`, which are in the space, would replace it; remove it"
    if tune.halving is not None and {"epochs", "steps"} & set(tune.space):
        reason = "gives trials a part of their length, so `epochs` and `steps` cannot be in the space; leave it out"
        yield ("tune", "halving"), reason


def _sample_problems(study: Study, tune: Tune) -> Iterator[tuple[Path, str]]:
    """Trials may not have more labels than what is reported; numbers of a class and numbers in all cannot be compared here."""
    wanted = tune.cheaper.get("examples")
    if wanted is None:
        return
    for arm in study.arms:
        own = study.settings(arm).examples
        if own is not None and isinstance(own, int) != isinstance(wanted, int):
            form = "a number" if isinstance(own, int) else "{per_class: N}"
            yield (
                ("tune", "budget", "examples"),
                f"arm '{arm}' counts its examples otherwise; give {form}, or leave it out",
            )
            return


def space_size(space: Space) -> int | None:
    """How many points a space has; None where a range has no end of them."""
    if any(isinstance(values, Range) for values in space.values()):
        return None
    return math.prod(len(values) for values in space.values() if not isinstance(values, Range))


def draw_points(tune: Tune, methods: Sequence[str]) -> list[Point]:
    """The points that an arm with these methods tries: shared fields as every arm, its methods' own beside them.

    Every arm gets the same number of them, unless nothing but methods' own fields is tuned, or a whole grid.
    """
    if tune.sampler == "qmc":
        from fairtune.study.optuna_sampler import draw_evenly

        shared = draw_evenly(tune.shared, tune.trials, _seed(tune, "shared"))
    else:
        shared = _draw(tune.shared, tune.trials, _seed(tune, "shared"))
    own = tune.own(tuple(methods))
    if not own:
        return shared
    if not tune.shared or tune.sampler == "grid":
        return _draw({**tune.shared, **own}, tune.trials, _seed(tune, "own", sorted(own)))
    values = {name: _spread(part, len(shared), _seed(tune, "own", name)) for name, part in own.items()}
    return [{**point, **{name: values[name][place] for name in own}} for place, point in enumerate(shared)]


def _draw(space: Space, count: int, seed: str) -> list[Point]:
    """So many different points, or all where a space has no more; in what order the space was written changes nothing."""
    generator, size, names = random.Random(seed), space_size(space), sorted(space)
    if size is not None:
        grid = [
            dict(zip(names, point, strict=True)) for point in itertools.product(*(_ordered(space[n]) for n in names))
        ]
        chosen = range(size) if size <= count else sorted(generator.sample(range(size), count))
        return [{name: grid[place][name] for name in space} for place in chosen]
    drawn = [{name: draw_value(_ordered(space[name]), generator.random()) for name in names} for _ in range(count)]
    return [{name: point[name] for name in space} for point in drawn]


def _ordered(values: Values | Range) -> Any:
    """Values in an order of their own; a range as it is."""
    return values if isinstance(values, Range) else sorted(values, key=lambda value: (str(type(value)), value or 0))


def _spread(values: Values | Range, count: int, seed: str) -> list[Any]:
    """So many values, each about as often as the others, in an order of no meaning."""
    generator, values = random.Random(seed), _ordered(values)
    if isinstance(values, Range):
        found = [draw_value(values, (place + generator.random()) / count) for place in range(count)]
    else:
        found = [values[place % len(values)] for place in range(count)]
    generator.shuffle(found)
    return found


def draw_value(values: Values | Range, share: float) -> Any:
    """The value at a share of the way through."""
    if not isinstance(values, Range):
        return values[min(len(values) - 1, int(share * len(values)))]
    span = values.high / values.low if values.log else values.high - values.low
    found = values.low * span**share if values.log else values.low + span * share
    return values.rounded(found)


def _seed(tune: Tune, *words: Any) -> str:
    """What the draws follow from: the space and the number of trials, nothing that could be tried again at will."""
    space = {
        name: values.model_dump(mode="json") if isinstance(values, Range) else _ordered(values)
        for name, values in tune.space.items()
    }
    return hashlib.sha256(json.dumps([space, tune.trials, *words], sort_keys=True).encode()).hexdigest()
