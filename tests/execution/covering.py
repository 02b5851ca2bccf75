"""Arms that together have every method, so that what a kill leaves behind is tested for each of them in few runs."""

from __future__ import annotations

from typing import Any

from fairtune.methods.base import Method
from fairtune.methods.registry import conflicts, parse_method_use, registered


def has_state(name: str) -> bool:
    """Whether a method keeps something of its own between steps, which a run has to save and take up again."""
    return registered()[name].state_dict is not Method.state_dict


def resumed_arms(uses: dict[str, Any]) -> dict[str, list[Any]]:
    """Arms by name: each method with state alone, the others in as few arms as they fit into together.

    Args:
        uses: each method as an arm lists it, by name.
    """
    arms = [[name] for name in uses if has_state(name)]
    shared: list[list[str]] = []
    for name in uses:
        if has_state(name):
            continue
        for arm in shared:
            entries = [parse_method_use(uses[one]) for one in (*arm, name)]
            if not conflicts(entries):
                arm.append(name)
                break
        else:
            shared.append([name])
    return {"+".join(arm): [uses[name] for name in arm] for arm in (*arms, *shared)}
