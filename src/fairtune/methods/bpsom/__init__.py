"""BP-SOM: back-propagation with a class-labelled self-organising map on a hidden layer."""

from fairtune.methods.bpsom import arms  # noqa: F401 - registers the named arms
from fairtune.methods.bpsom.config import BPSOMConfig
from fairtune.methods.registry import register

register(
    "bpsom",
    BPSOMConfig,
    "fairtune.methods.bpsom.method:BPSOM",
    claims=["classification head"],
    kinds=("classify",),
    toy={"hidden": 16, "grid": 4, "reliability": 0.5, "relabel": 2, "prune": 5e-4},
)
