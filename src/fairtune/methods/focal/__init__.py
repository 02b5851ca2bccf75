"""Focal loss: examples that are already right count less."""

from fairtune.methods.focal.config import FocalConfig
from fairtune.methods.registry import register

register("focal", FocalConfig, "fairtune.methods.focal.method:Focal", claims=["loss"], kinds=("classify",))
