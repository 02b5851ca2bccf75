"""Where an attention module keeps its query, key and value projections. A layout is plain data; anyone may add one.

Most architectures have one linear map for each of q, k and v, under one of a few names (`PLAIN`). They need no entry: a forward
pass proves what the names say (`models.attention_proof`). The table holds the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairtune.core.errors import ModelError

if TYPE_CHECKING:
    from torch import nn

PLAIN = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("query_proj", "key_proj", "value_proj"),
    ("q", "k", "v"),
    ("q_lin", "k_lin", "v_lin"),
    ("q_head", "k_head", "v_head"),
    ("linear_q", "linear_k", "linear_v"),
    ("Wq", "Wk", "Wv"),
)
"""What architectures call three plain projections."""
SCORES = re.compile(r"query|key|(^|_|W)[qkv]*[qk][qkv]*(_|$)")
"""Names of children that take part in attention scores."""


@dataclass(frozen=True)
class AttentionLayout:
    """How an attention class names and arranges its projections.

    Args:
        projections: attribute of the attention module -> the parts its rows hold, in order (`q`, `kv`, `qkv`; `g` is a gate, which
            is no part of the scores); an attribute that only some configurations have ends in `?`.
        heads: attribute of the module, or of its config, with the number of query heads; empty if the shapes tell.
        key_heads: the same for keys and values; empty if there are as many as query heads, or the shapes tell.
        interleaved: fused rows go head by head (one group of queries with its key and its value after another), not part by part.
        proven: whether it is known to be right; otherwise a forward pass must show it.
    """

    projections: Mapping[str, str]
    heads: str = ""
    key_heads: str = ""
    interleaved: bool = False
    proven: bool = True


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
    allowed = ("q", "k", "v", "qk", "kv", "qkv", "qg")
    if any(parts not in allowed for parts in projections.values()) or not set("qkv") <= set(
        "".join(projections.values())
    ):
        raise ModelError(
            f"register_attention('{name}'): projections are {dict(projections)}; each value must be one of {', '.join(allowed)}, "
            "and together they must hold all of q, k and v."
        )
    _own[name] = AttentionLayout(dict(projections), heads, key_heads, interleaved)


def layout_of(module: nn.Module) -> AttentionLayout | None:
    """The layout of an attention module: described for its class or a class it derives from, or plain; else None."""
    for ancestor in type(module).__mro__:
        for layout in (_own.get(ancestor.__name__), *_KNOWN.get(ancestor.__name__, ())):
            if layout is not None and _fits(layout, module):
                return layout
    return _plain_layout(module)


def _fits(layout: AttentionLayout, module: nn.Module) -> bool:
    needed = [name for name in layout.projections if not name.endswith("?")]
    return all(getattr(module, name, None) is not None for name in needed)


def _plain_layout(module: nn.Module) -> AttentionLayout | None:
    """One linear map for each of q, k and v; none if a fourth child may take part in the scores too."""
    from torch import nn  # which registering needs not

    children = dict(module.named_children())
    linear = {name for name, child in children.items() if isinstance(getattr(child, "base_layer", child), nn.Linear)}
    found = [names for names in PLAIN if linear.issuperset(names)]
    if len(found) != 1:
        return None
    others = [child for name, child in children.items() if name not in found[0] and SCORES.search(name)]
    if any(parameter.ndim > 1 for child in others for parameter in child.parameters()):  # more than a norm
        return None
    return AttentionLayout(dict(zip(found[0], "qkv", strict=True)), proven=False)


def registered_layouts() -> dict[str, dict[str, Any]]:
    """The layouts added with `register_attention`, as data that another process can take over."""
    return {name: asdict(layout) for name, layout in _own.items()}


def take_layouts(layouts: Mapping[str, Mapping[str, Any]]) -> None:
    """Register what `registered_layouts` gave in another process."""
    _own.update({name: AttentionLayout(**fields) for name, fields in layouts.items()})


_own: dict[str, AttentionLayout] = {}

_PLAIN = tuple(AttentionLayout(dict(zip(names, "qkv", strict=True))) for names in PLAIN)
_GATED = (AttentionLayout({"q_proj": "qg", "k_proj": "k", "v_proj": "v"}, interleaved=True),)
_BY_HEAD = (
    AttentionLayout({"query_key_value": "qkv"}, interleaved=True),
)  # also by groups of queries, down to a single group


def _bert_and(**more: str) -> tuple[AttentionLayout]:
    return (AttentionLayout({"query": "q", "key": "k", "value": "v", **more}),)


_KNOWN: dict[str, tuple[AttentionLayout, ...]] = {
    "ModernBertAttention": (AttentionLayout({"Wqkv": "qkv"}),),
    "MptAttention": (AttentionLayout({"Wqkv": "qkv"}),),
    "Phi3Attention": (AttentionLayout({"qkv_proj": "qkv"}),),
    "GPT2Attention": (
        AttentionLayout({"q_attn": "q", "c_attn": "kv"}),
        AttentionLayout({"c_attn": "qkv"}),
    ),  # the first across
    "Attention": (AttentionLayout({"c_attn": "qkv"}),),  # of the first GPT
    "GPTBigCodeAttention": (AttentionLayout({"c_attn": "qkv"}, interleaved=True),),
    **dict.fromkeys(("GPTNeoXAttention", "PersimmonAttention", "BloomAttention", "FalconAttention"), _BY_HEAD),
    **dict.fromkeys(("Qwen3_5Attention", "Qwen3NextAttention"), _GATED),
    # DeBERTa-v2 and v3: the position projections enter the scores too.
    "DisentangledSelfAttention": (
        AttentionLayout(
            {"query_proj": "q", "key_proj": "k", "value_proj": "v", "pos_query_proj?": "q", "pos_key_proj?": "k"}
        ),
    ),
    "LongformerSelfAttention": _bert_and(query_global="q", key_global="k", value_global="v"),
    "LiltSelfAttention": _bert_and(layout_query="q", layout_key="k", layout_value="v"),
    "LukeSelfAttention": _bert_and(**dict.fromkeys(("w2e_query?", "e2w_query?", "e2e_query?"), "q")),
    # Plain, but not for the proof: a single token attends to more than itself (sinks, latents, two texts at once), or cannot
    # pass (it is pooled away), or short texts are treated differently.
    **dict.fromkeys(
        ("GptOssAttention", "T5Gemma2MergedAttention", "PerceiverSelfAttention", "CanineSelfAttention"), _PLAIN
    ),
    **dict.fromkeys(("FunnelRelMultiheadAttention", "BigBirdBlockSparseAttention"), _PLAIN),
    "BigBirdPegasusBlockSparseAttention": _PLAIN,
}
