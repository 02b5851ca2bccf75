"""Label smoothing: a little of every target goes to all classes alike."""

from fairtune.methods.label_smoothing.config import LabelSmoothingConfig
from fairtune.methods.registry import register

register(
    "label_smoothing",
    LabelSmoothingConfig,
    "fairtune.methods.label_smoothing.method:LabelSmoothing",
    claims=["loss"],
    kinds=("classify",),
)
