"""The settings of an adapter, checked when a study is read: what the library offers, what a study can use of it, and how large."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from fairtune.core.errors import shown
from fairtune.methods.peft.library import (
    UNKNOWN,
    AdapterField,
    AdapterType,
    library_adapter_types,
    library_folder,
)
from fairtune.methods.peft.rehearsal import is_taken
from fairtune.settings.values import LARGEST_SEED, LONGEST_TEXT, MOST_STEPS

UNFIT_ADAPTER_TYPES = {
    "multitask_prompt_tuning": "it needs a task id in every batch",
    "poly": "it needs a task id in every batch",
    "shadow": "the card cannot describe the second network that it adds",
    "xlora": "it mixes adapters that are trained already",
}
"""Adapter types that need more than a model and its batches, or give more than a model."""
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


LARGEST = 10_000
"""Ranks, widths, block sizes, tokens of a prompt."""
LARGEST_NUMBER = 1e9
MOST_ENTRIES, MOST_LEVELS = 1000, 8
_STEPS = ("deltaT", "tinit", "tfinal", "total_step", "init_warmup", "final_warmup", "mask_interval")
_TOKENS = ("alora_invocation_tokens", "cpt_token_ids", "token_indices", "trainable_token_indices")
_SCALES = ("alpha", "alpha_pattern", "delora_lambda", "lambda_pattern", "lora_alpha", "psoft_alpha", "randlora_alpha")
_OTHERS = {
    **dict.fromkeys(_STEPS, MOST_STEPS),
    **dict.fromkeys(_TOKENS, 10_000_000),
    **dict.fromkeys(_SCALES, 1_000_000),
    **dict.fromkeys(("n_frequency", "n_frequency_pattern"), 1_000_000),
    **dict.fromkeys(("encoder_num_layers", "depth", "boft_n_butterfly_factor", "loftq_config"), 64),
    **dict.fromkeys(("num_layers", "num_B", "layer_replication"), 256),
    **dict.fromkeys(("num_cayley_neumann_terms", "psoft_svd_lowrank_niter"), 1000),
}
"""Whole numbers that are not sizes, or multiply what is one."""
_FEWER_ENTRIES = {"layer_replication": 64}
NOT_INSTALLED = "the PEFT library is not installed; run `pip install 'fairtune[peft]'`"


def unfit_setting(adapter_type: str, field: str, value: Any) -> str | None:
    """Why a study cannot use this value of a field, or None if it can."""
    if isinstance(value, str) and value in _UNFIT_VALUES.get((adapter_type, field), {}):
        return _UNFIT_VALUES[adapter_type, field][value]
    return None if value is None or value is False else _UNFIT_FIELDS.get((adapter_type, field))


def largest(field: str) -> int:
    """The largest whole number that a field may hold, by itself or inside of what it holds."""
    if "seed" in field or "prng" in field:
        return LARGEST_SEED
    return _OTHERS.get(field, LARGEST)


def find_bound_problem(field: str, value: Any, level: int = 0) -> str | None:
    """What of a value is beyond a field's bounds, as what is allowed; None if nothing is."""
    if isinstance(value, int) and not -largest(field) <= value <= largest(field):
        return f"whole numbers from {-largest(field):,} to {largest(field):,}"
    if isinstance(value, float) and abs(value) > LARGEST_NUMBER:
        return f"numbers from {-LARGEST_NUMBER:,.0f} to {LARGEST_NUMBER:,.0f}"
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"texts of at most {LONGEST_TEXT:,} characters"
    if not isinstance(value, dict | list | tuple | set):
        return None
    if len(value) > _most_entries(field):
        return f"at most {_most_entries(field):,} entries"
    if level == MOST_LEVELS:
        return f"at most {MOST_LEVELS} levels"
    parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    return next((found for part in parts if (found := find_bound_problem(field, part, level + 1))), None)


def add_bounds(field: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a field with its bounds."""
    found = {key: _bounded(field, part) for key, part in schema.items()}
    schema_type = found.get("type")
    if schema_type == "integer":
        return {**found, "minimum": -largest(field), "maximum": largest(field)}
    if schema_type == "number":
        return {**found, "minimum": -LARGEST_NUMBER, "maximum": LARGEST_NUMBER}
    if schema_type == "string" and "enum" not in found and "pattern" not in found:
        return {**found, "maxLength": LONGEST_TEXT}
    if schema_type in ("array", "object"):
        return {**found, "maxItems" if schema_type == "array" else "maxProperties": _most_entries(field)}
    return found


def _bounded(field: str, part: Any) -> Any:
    if isinstance(part, dict):
        return add_bounds(field, part)
    return [_bounded(field, item) for item in part] if isinstance(part, list) else part


def _most_entries(field: str) -> int:
    return _FEWER_ENTRIES.get(field, MOST_ENTRIES)


Problem = PydanticCustomError | str
"""What is wrong with a value: an error that studies have words for, or the words."""


def adapter_types() -> dict[str, AdapterType]:
    """The adapter types that a study can use, by the name it uses; none if the library is not installed."""
    folder = library_folder()
    known = library_adapter_types(folder) if folder else {}
    return {name: adapter_type for name, adapter_type in known.items() if name not in UNFIT_ADAPTER_TYPES}


def checked(name: Any, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The adapter type's name in the library, and its settings there.

    Args:
        name: of the adapter type, as the study has it.

    Raises:
        ValidationError: a field is unknown or has a value that the library would not take.
        ValueError: the library is not installed, or refuses the settings for what they are together.
    """
    known = adapter_types()
    if not known:
        raise ValueError(NOT_INSTALLED)
    if not isinstance(name, str) or name not in known:
        unfit = UNFIT_ADAPTER_TYPES.get(name) if isinstance(name, str) else None
        refused = f"a study cannot train {name}: {unfit}" if unfit else _unknown("type", name, known)
        raise _refusal({"type": (name, refused)})
    adapter_type = known[name]
    fields = {field.name: field for field in adapter_type.fields}
    problems = {
        key: (value, found) for key, value in settings.items() if (found := _problem(adapter_type, fields, key, value))
    }
    if problems:
        raise _refusal(problems)
    taken = {key: _adapter(fields[key].type).validate_python(value) for key, value in settings.items()}
    whole = {**taken, **dict(adapter_type.sets)}
    complaint = _complaint(adapter_type, whole)
    if complaint:
        place = next((key for key in settings if f"`{key}`" in complaint), None)
        text = f"the PEFT library refuses this: {complaint}"
        raise _refusal({place: (settings[place], text)}) if place else ValueError(text)
    return adapter_type.name, whole


def library_config(adapter_type: str, settings: Mapping[str, Any]) -> Any:
    """The library's own config; this imports it."""
    import peft

    return peft.get_peft_config({"peft_type": adapter_type.upper(), **copy.deepcopy(dict(settings))})


def field_schema(field: AdapterField) -> dict[str, Any]:
    """The JSON schema of one field, with its help and its default."""
    default = {} if field.default is UNKNOWN else {"default": field.default}
    return {**add_bounds(field.name, _type_schema(field.type)), **default, "description": field.help}


def _problem(adapter_type: AdapterType, fields: Mapping[str, AdapterField], name: str, value: Any) -> Problem | None:
    if name not in fields:
        return _unknown(f"field of {adapter_type.config}", name, fields)
    if beyond := find_bound_problem(name, value):
        return f"found {shown(value)}; allowed: {beyond}. {fields[name].help}"
    try:
        _adapter(fields[name].type).validate_python(value)
    except ValidationError:
        return PydanticCustomError("field", "not a value of this field", {"fragment": field_schema(fields[name])})
    reason = unfit_setting(adapter_type.name, name, value)
    return f"a study cannot use {shown(value)} here: {reason}" if reason else None


def _complaint(adapter_type: AdapterType, settings: Mapping[str, Any]) -> str | None:
    """The first line of what the library itself says against the settings; imported only where it may have something to say."""
    folder = library_folder()
    if "peft" not in sys.modules and folder and is_taken(folder, adapter_type.name, adapter_type.config, settings):
        return None
    try:
        library_config(adapter_type.name, settings)
    except Exception as error:
        lines = str(error).strip().splitlines()
        return lines[0].strip() if lines else type(error).__name__
    return None


@cache
def _adapter(type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type, config=ConfigDict(strict=True, allow_inf_nan=False))


@cache
def _type_schema(type: Any) -> dict[str, Any]:
    """Not to be changed by who asks: hundreds of fields share a few types."""
    return _adapter(type).json_schema()


def _unknown(what: str, name: Any, allowed: Iterable[str]) -> PydanticCustomError:
    return PydanticCustomError("unknown", "unknown", {"what": what, "name": str(name)[:60], "allowed": list(allowed)})


def _refusal(problems: Mapping[str, tuple[Any, Problem]]) -> ValidationError:
    return ValidationError.from_exception_data("peft", [_detail(*problem) for problem in problems.items()])


def _detail(name: str, found: tuple[Any, Problem]) -> InitErrorDetails:
    value, problem = found
    if isinstance(problem, str):
        return InitErrorDetails(type="value_error", loc=(name,), input=value, ctx={"error": problem})
    return InitErrorDetails(type=problem, loc=(name,), input=value)
