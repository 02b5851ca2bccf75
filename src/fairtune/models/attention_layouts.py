"""Where each attention class keeps its query, key and value projections. A layout is plain data; anyone may add one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairtune.core.errors import ModelError

if TYPE_CHECKING:
    from torch import nn

PARTS = ("q", "k", "v")


@dataclass(frozen=True)
class AttentionLayout:
    """How an attention class names and arranges its projections.

    Args:
        projections: attribute of the attention module -> the parts its rows hold, in order (`q`, `kv`, `qkv`);
            an attribute that only some configurations have ends in `?`.
        heads: attribute of the module, or of its config, with the number of query heads.
        key_heads: the same for keys and values; empty if there are as many as query heads.
        interleaved: fused rows go head by head (one group of queries with its key and its value after another), not part by part.
    """

    projections: Mapping[str, str]
    heads: str = "num_attention_heads"
    key_heads: str = ""
    interleaved: bool = False


def register_attention(
    attention: str | type[nn.Module],
    projections: Mapping[str, str],
    heads: str = "num_attention_heads",
    key_heads: str = "",
    interleaved: bool = False,
) -> None:
    """Describe the projections of an attention class that fairtune does not know.

    Args:
        attention: the class, or its name.
        projections: as in `{"wq": "q", "wk": "k", "wv": "v"}`, or `{"qkv_proj": "qkv"}` for a fused one.
        heads: attribute with the number of heads, of the attention module or of its config.
        key_heads: the same for keys and values, where they are fewer.
        interleaved: a fused weight's rows go head by head instead of part by part.
    """
    name = attention if isinstance(attention, str) else attention.__name__
    held = "".join(projections.values())
    if any(parts not in ("q", "k", "v", "qk", "kv", "qkv") for parts in projections.values()) or set(held) != set(
        PARTS
    ):
        raise ModelError(
            f"register_attention('{name}'): projections are {dict(projections)}; each value must be one of q, k, v, qk, kv, qkv, "
            "and together they must hold all of q, k and v."
        )
    _own[name] = AttentionLayout(dict(projections), heads, key_heads, interleaved)


def layout_of(module: nn.Module) -> AttentionLayout | None:
    """The layout of an attention module, by its class or a class it derives from; None if it is not known."""
    for ancestor in type(module).__mro__:
        for layout in (_own.get(ancestor.__name__), *_KNOWN.get(ancestor.__name__, ())):
            if layout is not None and _fits(layout, module):
                return layout
    return None


def _fits(layout: AttentionLayout, module: nn.Module) -> bool:
    needed = [name for name in layout.projections if not name.endswith("?")]
    return all(getattr(module, name, None) is not None for name in needed)


def registered_layouts() -> dict[str, dict[str, Any]]:
    """The layouts added with `register_attention`, as data that another process can take over."""
    return {name: asdict(layout) for name, layout in _own.items()}


def take_layouts(layouts: Mapping[str, Mapping[str, Any]]) -> None:
    """Register what `registered_layouts` gave in another process."""
    for name, fields in layouts.items():
        register_attention(name, **fields)


_own: dict[str, AttentionLayout] = {}

_BERT = AttentionLayout({"query": "q", "key": "k", "value": "v"})
_LLAMA = AttentionLayout({"q_proj": "q", "k_proj": "k", "v_proj": "v"}, key_heads="num_key_value_heads")
_OPT = AttentionLayout({"q_proj": "q", "k_proj": "k", "v_proj": "v"}, heads="num_heads")
_T5 = AttentionLayout({"q": "q", "k": "k", "v": "v"}, heads="n_heads")

_KNOWN: dict[str, tuple[AttentionLayout, ...]] = {
    **{
        f"{family}{part}Attention": (_BERT,)
        for family in ("Bert", "Roberta", "XLMRoberta", "XLMRobertaXL", "RobertaPreLayerNorm", "Camembert", "Electra")
        for part in ("Self", "Cross")
    },
    "AlbertAttention": (_BERT,),
    "MPNetSelfAttention": (AttentionLayout({"q": "q", "k": "k", "v": "v"}),),
    "DistilBertSelfAttention": (AttentionLayout({"q_lin": "q", "k_lin": "k", "v_lin": "v"}, heads="n_heads"),),
    "DisentangledSelfAttention": (  # DeBERTa-v2 and v3; the position projections enter the scores too
        AttentionLayout(
            {"query_proj": "q", "key_proj": "k", "value_proj": "v", "pos_query_proj?": "q", "pos_key_proj?": "k"}
        ),
    ),
    "ModernBertAttention": (AttentionLayout({"Wqkv": "qkv"}),),
    "GPT2Attention": (
        AttentionLayout({"q_attn": "q", "c_attn": "kv"}, heads="num_heads"),  # its cross-attention
        AttentionLayout({"c_attn": "qkv"}, heads="num_heads"),
    ),
    "GPTNeoXAttention": (AttentionLayout({"query_key_value": "qkv"}, interleaved=True),),
    "BloomAttention": (AttentionLayout({"query_key_value": "qkv"}, heads="num_heads", interleaved=True),),
    "FalconAttention": (  # its three variants are one: groups of queries with their key and value, down to a single group
        AttentionLayout({"query_key_value": "qkv"}, heads="num_heads", key_heads="num_kv_heads", interleaved=True),
    ),
    "Phi3Attention": (AttentionLayout({"qkv_proj": "qkv"}, key_heads="num_key_value_heads"),),
    **dict.fromkeys(("OPTAttention", "BartAttention", "GPTNeoSelfAttention"), (_OPT,)),
    **{
        f"{family}Attention": (_LLAMA,)
        for family in (
            "Llama", "Mistral", "Mixtral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3", "Phi", "Starcoder2", "Olmo2",
            "Granite", "Cohere", "SmolLM3", "StableLm",
        )
    },
    **dict.fromkeys(("T5Attention", "MT5Attention"), (_T5,)),
}  # fmt: skip
