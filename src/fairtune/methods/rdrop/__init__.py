"""R-Drop: what two dropout masks make of an example is pulled together."""

from fairtune.methods.rdrop.config import RDropConfig
from fairtune.methods.registry import register

register(
    "rdrop",
    RDropConfig,
    "fairtune.methods.rdrop.method:RDrop",
    claims=["copies of an example in a batch"],
    kinds=("classify",),
)
