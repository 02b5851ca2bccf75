"""Augmentation: training texts with words left out, exchanged, misspelt, or changed by a function of the user's."""

from fairtune.methods.augment.config import AugmentConfig
from fairtune.methods.registry import register

register("augment", AugmentConfig, "fairtune.methods.augment.method:Augment", ["training texts"], ["classify"])
