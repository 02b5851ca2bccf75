"""What titles of maps say: when a map was taken, and its figures in a line."""

from __future__ import annotations

from collections.abc import Sequence

from fairtune.analysis.maps import MapPass
from fairtune.core.numbers import DASH


def when(one: MapPass, passes: Sequence[MapPass]) -> str:
    """`epoch 3`, or `step 150` for a run that does not label its map once an epoch."""
    epochs = [other.epoch for other in passes]
    once = 0 not in epochs and len(set(epochs)) == len(epochs)
    return f"epoch {one.epoch}" if once else f"step {one.step:,}"


def used(one: MapPass) -> str:
    """`SOM use 76.6 %`; of a map that only watches it would have been."""
    told = DASH if one.use is None else f"{100 * one.use:.1f} %"
    return f"would use {told}" if one.watches_only else f"SOM use {told}"


def units_left(one: MapPass) -> str:
    """`, 12 units`, to stand at a line's end."""
    return "" if one.units is None else f", {one.units} unit{'' if one.units == 1 else 's'}"


def threshold_text(one: MapPass) -> str:
    return DASH if one.threshold is None else f"{100 * one.threshold:g} %"
