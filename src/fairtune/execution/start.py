"""The model a run starts from: the checkpoint, changed by the arm's methods. The same settings always build the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from torch import nn

from fairtune.core.errors import ModelError
from fairtune.core.seeding import derive, seed_all
from fairtune.methods.base import Method
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import create_method
from fairtune.models.attention_geometry import CheckpointFacts, describe_attention, measure_pass, take_checkpoint_facts
from fairtune.models.causal_classifier import Attention
from fairtune.models.declarations import Declarations, Digests
from fairtune.models.flops import describe_costs
from fairtune.models.init_card import digests_outside, make_init_card
from fairtune.models.loader import LoadedModel, load_classifier, load_language_model
from fairtune.models.model_parts import Batch
from fairtune.models.pooled_encoder import PooledEncoder, freeze_unread
from fairtune.models.sources import ModelSource
from fairtune.models.tokenizers import load_tokenizer
from fairtune.models.transformers_files import explain_failure


@dataclass(frozen=True)
class Start:
    """What a run starts from.

    Args:
        model: prepared by the methods; may wrap or replace what was loaded.
        loaded: the checkpoint's network, and which of its tensors came from the checkpoint.
        before: what is remembered of the network before the methods changed it.
        declared: which tensors each method says that it changes.
        outside: what is remembered of tensors that no file can prove.
        batch: the real one that was measured on, if any.
        unread: tensors that this way of learning has no use for.
    """

    model: nn.Module
    methods: list[Method]
    loaded: LoadedModel
    before: CheckpointFacts
    declared: Declarations
    outside: Digests
    batch: Batch | None
    unread: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the run's results must know of its start."""
        return self.loaded.notes

    def describe(self) -> dict[str, Any]:
        """The card: tensors against the checkpoint's, the attention's geometry, what training costs.

        Raises:
            RunFailure: something was changed that no method declares to change; of an arm without methods, anything.
        """
        card = make_init_card(self.model, self.loaded, self.declared, self.outside)
        if not self.methods:
            card.require_untouched(self.unread)
        card.require_declared(self.declared)
        measured = measure_pass(self.model, self.batch) if self.methods else self.before.measured
        return {
            **card.as_json(),
            "notes": list(self.notes),
            "attention": describe_attention(self.model, self.before, measured),
            "costs": describe_costs(self.model, self.before.measured.flops, measured.flops),
        }


def build_start(
    source: ModelSource,
    uses: Sequence[MethodUse],
    seed: int,
    labels: tuple[str, ...],
    *,
    batch: Batch | None = None,
    tokenizer: Path | None = None,
    attention: Attention | None = None,
    pooled: bool = False,
) -> Start:
    """Load the checkpoint, or draw the preset, and let each method prepare it.

    Args:
        labels: what it is to tell apart; none of a language model.
        batch: a real one, to measure attention and cost on before the methods change them.
        tokenizer: its folder; if absent the checkpoint's own, where it has one.
        attention: how a GPT-like classifier attends; None is its own way.
        pooled: whether it only makes vectors of texts, on which a head is fitted.
    """
    words = _tokenizer(source, tokenizer, padding=bool(labels))
    seed_all(derive(seed, "head"))
    loaded = load_classifier(source, labels, words, attention) if labels else load_language_model(source, words)
    methods = [create_method(use, derive(seed, "method", place)) for place, use in enumerate(uses)]
    model: nn.Module = loaded.network
    with explain_failure(f"model '{source.name}': no text goes through it"):
        before = take_checkpoint_facts(model, batch)
    if pooled:
        encoder = PooledEncoder(loaded.network)
        unread = () if batch is None else freeze_unread(encoder, batch)
        kept = loaded.from_checkpoint & set(encoder.state_dict())
        loaded = replace(loaded, network=cast(Any, encoder), from_checkpoint=kept)
        return Start(encoder, [], loaded, before, Declarations(), digests_outside(loaded), batch, unread)
    outside, declared = digests_outside(loaded), Declarations()
    for use, method in zip(uses, methods, strict=True):
        model = method.prepare(model)
        declared = declared.with_method(use.name, method.changes(model), loaded.from_checkpoint)
    return Start(model, methods, loaded, before, declared, outside, batch)


def _tokenizer(source: ModelSource, folder: Path | None, padding: bool) -> Any:
    """What tells the model its special tokens; a checkpoint that lacks a tokenizer can be looked at all the same."""
    if folder is not None:
        return load_tokenizer(folder, padding)
    if source.preset is not None:
        return None
    own = source.fetch()
    try:
        return load_tokenizer(own, padding)
    except ModelError:
        return None


def plain_model(model: nn.Module, methods: list[Method]) -> Any:
    """A trained model as plain transformers has it: what the methods added is folded in or taken off."""
    for method in reversed(methods):
        model = method.plain(model)
    return model


def save_adapter(model: Any, methods: Sequence[Method], folder: Path) -> None:
    """Save the adapters of a PEFT arm as PEFT does, before `plain_model` folds them in, with the config for their checkpoint.

    Nothing is saved where the checkpoint and the adapters do not make the model: another method has prepared the weights too, or
    they were drawn for a preset.
    """
    adapters = getattr(model, "peft_config", {}).get("default")
    preparing = [method for method in methods if type(method).prepare is not Method.prepare]
    if adapters is None or len(preparing) > 1 or not adapters.base_model_name_or_path:
        return
    network = model.get_base_model()
    network.config.architectures = [type(network).__name__]
    network.config.save_pretrained(folder)
    model.save_pretrained(folder, save_embedding_layers=False)
