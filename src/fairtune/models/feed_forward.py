"""Finding the feed-forward weights of a model's transformer blocks."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from fairtune.core.errors import ModelError
from fairtune.models.attention import block_numbers, block_of
from fairtune.models.split_projection import is_projection


@dataclass(frozen=True)
class FeedForward:
    """One linear map of a feed-forward layer.

    Args:
        pieces: how many matrices its rows hold one after another (a gate and what it gates).
    """

    name: str
    block: int
    module: nn.Module
    pieces: int


def feed_forward_weights(model: nn.Module) -> list[FeedForward]:
    """Every linear map of every feed-forward layer, in the order of the model.

    Raises:
        ModelError: none was found.
    """
    numbers, found = block_numbers(model), []
    for name, module in model.named_modules():
        for attribute, pieces in _KNOWN.get(type(module).__name__, {}).items():
            child, where = getattr(module, attribute, None), f"{name}.{attribute}"
            if isinstance(child, nn.Module) and is_projection(child) and block_of(where) in numbers:
                found.append(FeedForward(where, numbers[block_of(where)], child, pieces))
    if not found:
        raise ModelError(
            f"{type(model).__name__}: its feed-forward layers are not known; `ffn: orthogonal` knows {', '.join(_KNOWN)}."
        )
    return found


_GATED = {"gate_proj": 1, "up_proj": 1, "down_proj": 1}
_FOUR_H = {"dense_h_to_4h": 1, "dense_4h_to_h": 1}
_KNOWN: dict[str, dict[str, int]] = {
    **{
        f"{family}{part}": {"dense": 1}
        for family in ("Bert", "Roberta", "XLMRoberta", "XLMRobertaXL", "RobertaPreLayerNorm", "Camembert", "Electra", "MPNet",
                       "DebertaV2")
        for part in ("Intermediate", "Output")
    },
    "AlbertLayer": {"ffn": 1, "ffn_output": 1},
    "FFN": {"lin1": 1, "lin2": 1},  # DistilBERT
    "ModernBertMLP": {"Wi": 2, "Wo": 1},
    "GPT2MLP": {"c_fc": 1, "c_proj": 1},
    "GPTNeoXMLP": _FOUR_H,
    "BloomMLP": _FOUR_H,
    "FalconMLP": _FOUR_H,
    "OPTDecoderLayer": {"fc1": 1, "fc2": 1},
    "Phi3MLP": {"gate_up_proj": 2, "down_proj": 1},
    **{f"{family}MLP": _GATED for family in ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3")},
    **{f"{family}DenseActDense": {"wi": 1, "wo": 1} for family in ("T5", "MT5")},
    **{f"{family}DenseGatedActDense": {"wi_0": 1, "wi_1": 1, "wo": 1} for family in ("T5", "MT5")},
}  # fmt: skip
