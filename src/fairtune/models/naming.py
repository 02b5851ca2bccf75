"""Names of tensors: what a model that the PEFT library wrapped calls them, and what the checkpoint calls them."""

from __future__ import annotations

import re
from collections.abc import Container

PROMPTS, TUNER = "base_model.", "base_model.model."
"""What stands before every name of a model with prompts, and of one with adapters in it."""
TRAINED_COPY = ".modules_to_save.default."
UNUSED_COPY = ".original_module."


def checkpoint_name(name: str, known: Container[str] = ()) -> str | None:
    """The checkpoint's name of a tensor; names of a plain model stay as they are.

    An adapter's own tensor gets a name that no checkpoint has. None means a copy that nothing uses: PEFT keeps the
    first state of a module that is trained as a whole.

    Args:
        known: names that the checkpoint has, which settle the case of prompts before a base model called `model`.
    """
    if not name.startswith(PROMPTS):
        return name
    if UNUSED_COPY in name:
        return None
    inner = re.sub(r"\.base_layer(?=\.)", "", name.replace(TRAINED_COPY, "."))
    if inner.removeprefix(PROMPTS) in known:
        return inner.removeprefix(PROMPTS)
    return inner.removeprefix(TUNER).removeprefix(PROMPTS)
