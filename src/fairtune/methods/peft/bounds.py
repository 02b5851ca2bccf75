"""How large a value of the library's configs may be: the library asks for memory by whatever number it is given."""

from __future__ import annotations

from typing import Any

from fairtune.settings.values import LARGEST_SEED, LONGEST_TEXT, MOST_STEPS

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
"""Whole numbers that are no sizes, or multiply what is one."""
_FEWER_ENTRIES = {"layer_replication": 64}


def largest(field: str) -> int:
    """The largest whole number that a field may hold, by itself or inside of what it holds."""
    if "seed" in field or "prng" in field:
        return LARGEST_SEED
    return _OTHERS.get(field, LARGEST)


def excess(field: str, value: Any, level: int = 0) -> str | None:
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
    return next((found for part in parts if (found := excess(field, part, level + 1))), None)


def add_bounds(field: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a field with its bounds."""
    found = {key: _bounded(field, part) for key, part in schema.items()}
    kind = found.get("type")
    if kind == "integer":
        return {**found, "minimum": -largest(field), "maximum": largest(field)}
    if kind == "number":
        return {**found, "minimum": -LARGEST_NUMBER, "maximum": LARGEST_NUMBER}
    if kind == "string" and "enum" not in found and "pattern" not in found:
        return {**found, "maxLength": LONGEST_TEXT}
    if kind in ("array", "object"):
        return {**found, "maxItems" if kind == "array" else "maxProperties": _most_entries(field)}
    return found


def _bounded(field: str, part: Any) -> Any:
    if isinstance(part, dict):
        return add_bounds(field, part)
    return [_bounded(field, item) for item in part] if isinstance(part, list) else part


def _most_entries(field: str) -> int:
    return _FEWER_ENTRIES.get(field, MOST_ENTRIES)
