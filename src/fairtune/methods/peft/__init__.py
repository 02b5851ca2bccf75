"""Adapters of the PEFT library: its methods are arms, its config fields are the arm's fields."""

from fairtune.methods.peft.config import PeftConfig
from fairtune.methods.registry import register

register(
    "peft",
    PeftConfig,
    "fairtune.methods.peft.method:Peft",
    claims=["choice of trainable parameters"],
    toy={"target_modules": ["value"]},
)
