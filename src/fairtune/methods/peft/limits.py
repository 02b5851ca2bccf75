"""What the library offers and a study cannot use: it would train as something else than its name says."""

from __future__ import annotations

from typing import Any

UNFIT_KINDS = {
    "multitask_prompt_tuning": "it needs a task id in every batch",
    "poly": "it needs a task id in every batch",
    "shadow": "the card cannot describe the second network that it adds",
    "xlora": "it mixes adapters that are trained already",
}
"""Kinds that need more than a model and its batches, or give more than a model."""
_TRAINED = "it mixes adapters that are trained already"
_FROM_DATA = "this start is computed from data by a script of its own"
_OWN_LOSS = "its own term of the loss is left to the caller"
_OWN_LOADING = (
    "the library would load that tokenizer by itself, from anywhere, and ask in the terminal whether to run its code; use "
    "`prompt_tuning_init: SAMPLE_VOCAB` or RANDOM"
)
_OWN_IMPORT = "the library would import the module that it names"
_UNFIT_VALUES = {("lora", "init_lora_weights"): {"eva": _FROM_DATA, "corda": _FROM_DATA, "lora_ga": _FROM_DATA}}
_UNFIT_FIELDS = {
    ("adamss", "use_asa"): "what it keeps from step to step is lost when a run is interrupted",
    ("lora", "arrow_config"): _TRAINED,
    ("lora", "kasa_config"): _OWN_LOSS,
    ("lora", "megatron_config"): _OWN_IMPORT,
    ("lora", "monteclora_config"): _OWN_LOSS,
    ("prompt_tuning", "tokenizer_kwargs"): _OWN_LOADING,
    ("prompt_tuning", "tokenizer_name_or_path"): _OWN_LOADING,
}


def unfit_setting(kind: str, field: str, value: Any) -> str | None:
    """Why a study cannot use this value of a field, or None if it can."""
    if isinstance(value, str) and value in _UNFIT_VALUES.get((kind, field), {}):
        return _UNFIT_VALUES[kind, field][value]
    return None if value is None or value is False else _UNFIT_FIELDS.get((kind, field))
