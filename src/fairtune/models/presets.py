"""Presets: language models trained from scratch, on transformers' own classes. Names and sizes only; nothing here needs torch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fairtune.core.errors import ModelError, nearest, one_of, shown
from fairtune.core.files import parse_json
from fairtune.settings.model import PresetModel

VERSION = 1
"""Raised whenever the same preset would become another model."""
SETTINGS = ("vocab_size", "context", "dropout")
"""What a study may set of a preset."""
WRITTEN = re.compile(r"(?P<name>[^()]+)\((?P<settings>[^()]*)\)")


@dataclass(frozen=True)
class Preset:
    """A model to train from scratch; transformers draws its weights, by its own rules for the architecture.

    Args:
        model_type: transformers' name of the architecture.
        sizes: fields of its config.
        context: the longest input, in the config's field `positions`.
        dropout: of each of the config's fields `dropouts`.
    """

    name: str
    help: str
    model_type: str
    sizes: Mapping[str, int | bool]
    context: int
    dropout: float
    positions: str
    dropouts: tuple[str, ...]

    def config(self, vocab_size: int | None, context: int, dropout: float) -> dict[str, Any]:
        """Everything that its config is made of; no token is special until there is a tokenizer."""
        return {
            "model_type": self.model_type,
            **self.sizes,
            self.positions: context,
            **dict.fromkeys(self.dropouts, dropout),
            **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
            "tie_word_embeddings": True,
            "vocab_size": vocab_size,
        }


def _gpt(name: str, use: str, width: int, layers: int, heads: int, context: int) -> Preset:
    sizes = {"n_embd": width, "n_layer": layers, "n_head": heads, "n_inner": 4 * width}
    dropouts = ("resid_pdrop", "embd_pdrop", "attn_pdrop")
    about = f"GPT-2, {width} wide, {layers} layers, {heads} heads, FFN {4 * width}, context {context}, tied head, dropout 0.1"
    return Preset(name, f"{about}; {use}", "gpt2", sizes, context, 0.1, "n_positions", dropouts)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _gpt("gpt-mini", "sized for two CPU cores", 256, 4, 4, 256),
        _gpt(
            "gpt-medium-512",
            "the published 'GPT Medium-512' had no attention biases: with 50,257 tokens this one has 44,909,056 parameters where "
            "that had 44,896,768, and orthogonal_qk freezes 3,151,872 where it froze 3,145,728",
            512, 6, 8, 512,
        ),
        _gpt("gpt-small", "the size of the smallest published GPT-2", 768, 12, 12, 1024),
        Preset(
            "llama-mini",
            "Llama, 256 wide, 4 layers, 8 query heads on 2 key/value heads, FFN 688, context 256, rotary positions, RMSNorm, tied "
            "head, no dropout; the architecture has dropout of attention weights only, so that is what `dropout` sets",
            "llama",
            {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
             "intermediate_size": 688},
            256, 0.0, "max_position_embeddings", ("attention_dropout",),
        ),
    )
}  # fmt: skip


def parse_preset(spec: str | PresetModel | Mapping[str, Any]) -> dict[str, Any] | None:
    """A preset with all its settings, from its name, the name that `preset_name` makes, or a mapping; None if a text names none."""
    if isinstance(spec, PresetModel):
        spec = spec.model_dump(exclude_none=True)
    if isinstance(spec, str):
        if spec in PRESETS:
            return _resolved({"preset": spec})
        written = WRITTEN.fullmatch(spec)
        if written is None or written["name"] not in PRESETS:
            return None
        return _resolved({"preset": written["name"], **_read(spec, written["settings"])})
    return _resolved(spec)


def preset_name(preset: Mapping[str, Any]) -> str:
    """Its name with the settings that are not the usual: `gpt-mini(vocab_size=8000)`."""
    usual = PRESETS[preset["preset"]]
    changed = [
        f"{name}={preset[name]}"
        for name in SETTINGS
        if preset[name] is not None and preset[name] != getattr(usual, name, None)
    ]
    return f"{usual.name}({', '.join(changed)})" if changed else usual.name


def preset_identity(preset: Mapping[str, Any]) -> str:
    """sha256 over everything that decides which model is drawn."""
    text = json.dumps([VERSION, preset_config(preset)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def preset_config(preset: Mapping[str, Any]) -> dict[str, Any]:
    """The values of transformers' config."""
    settings = {name: preset[name] for name in SETTINGS}
    return PRESETS[preset["preset"]].config(**settings)


def preset_remarks(preset: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a setting means something other than one may think."""
    usual = PRESETS[preset["preset"]]
    if preset["dropout"] and usual.dropouts == ("attention_dropout",):
        share = preset["dropout"]
        return (
            f"model '{preset_name(preset)}': {usual.model_type} has dropout of attention weights only; {share:g} is that.",
        )
    return ()


def _resolved(spec: Mapping[str, Any]) -> dict[str, Any]:
    name = spec.get("preset")
    if "preset" not in spec:
        raise ModelError(f"model: a mapping needs `preset`, one of {one_of(PRESETS)}.")
    if name not in PRESETS:
        raise ModelError(
            f"model: there is no preset {shown(str(name))}; known: {one_of(PRESETS)}.{nearest(str(name), PRESETS)}"
        )
    for setting in spec.keys() - {"preset", *SETTINGS}:
        raise ModelError(
            f"model: preset '{name}' has no setting {shown(setting)}; allowed: {one_of(SETTINGS)}.{nearest(setting, SETTINGS)}"
        )
    try:
        PresetModel.model_validate(dict(spec))
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ModelError(
            f"model: preset '{name}': {wrong['loc'][0]} is {shown(wrong['input'])}: {wrong['msg']}."
        ) from None
    usual, given = PRESETS[name], {setting: value for setting, value in spec.items() if value is not None}
    return {"preset": name, "vocab_size": None, "context": usual.context, "dropout": usual.dropout} | given


def _read(spec: str, written: str) -> dict[str, Any]:
    """The settings inside the brackets of a name."""
    found: dict[str, Any] = {}
    for part in written.split(","):
        setting, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            found[setting] = parse_json(value) if equals else None
        except ValueError:
            found[setting] = value
        if not setting or not equals:
            raise ModelError(f"model {shown(spec)}: settings are written as `gpt-mini(vocab_size=8000, context=128)`.")
    return found
