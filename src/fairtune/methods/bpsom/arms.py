"""BP-SOM and its controls as named arms."""

from __future__ import annotations

from fairtune.methods.arms import register_arm, register_family

register_family("bpsom")
register_arm(
    "bpsom",
    "BP-SOM as published: a map on a sigmoid layer pulls activations of a class together, and prunes; the method on trial.",
    ["bpsom"],
)
register_arm(
    "bpsom-observer",
    "The same head from the same start with a map that only watches: control for the head, without pull and pruning.",
    [{"bpsom": {"alpha": 0, "prune": None}}],
)
register_arm(
    "bpsom-no-prune",
    "BP-SOM that keeps every unit: control for pruning.",
    [{"bpsom": {"prune": None}}],
)
