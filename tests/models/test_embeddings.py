"""The token embeddings of every architecture, through whatever wraps a model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from accelerate import Accelerator
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.models.model_parts import token_embeddings
from tests.models.architectures import BUILDERS, build, inputs


def looked_up(model: nn.Module, batch: dict[str, Tensor]) -> list[Tensor]:
    """What the module that was found is called with."""
    seen: list[Tensor] = []
    hook = token_embeddings(model).register_forward_hook(lambda _, given, __: seen.append(given[0]))
    model(**batch)
    hook.remove()
    return seen


@pytest.mark.parametrize("name", BUILDERS)
def test_of_every_architecture_it_is_what_the_input_goes_through_first(name: str) -> None:
    model = build(name)
    batch = inputs(model, 6)
    with torch.no_grad():
        seen = looked_up(model, batch)
    assert len(seen) == 1, "of an encoder-decoder the encoder's, once"
    assert torch.equal(seen[0], batch["input_ids"])


@pytest.mark.parametrize(
    "wrap", [nn.DataParallel, Accelerator(cpu=True).prepare, torch.compile], ids=lambda w: w.__name__
)
def test_what_accelerate_and_torch_wrap_around_a_model_is_looked_through(wrap: Any) -> None:
    model = build("bert")
    assert token_embeddings(wrap(model)) is model.bert.embeddings.word_embeddings


def test_peft_is_looked_through_and_adapted_embeddings_are_the_adapted_ones() -> None:
    peft = pytest.importorskip("peft")
    model = build("bert")
    word = model.bert.embeddings.word_embeddings
    assert token_embeddings(peft.get_peft_model(model, peft.LoraConfig(target_modules=["query"]))) is word
    prompts = peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2)
    adapted = peft.get_peft_model(build("bert"), prompts)
    assert torch.equal(looked_up(adapted, inputs(adapted, 6))[0], inputs(adapted, 6)["input_ids"])
    wrapped = peft.get_peft_model(build("bert"), peft.LoraConfig(target_modules=["word_embeddings"]))
    assert type(token_embeddings(wrapped)).__module__.startswith("peft.")
    assert len(looked_up(wrapped, inputs(wrapped, 6))) == 1


def test_a_model_without_token_embeddings_is_reported() -> None:
    size: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    for model in (nn.Linear(2, 2), hf.ViTModel(hf.ViTConfig(image_size=8, patch_size=4, **size))):
        with pytest.raises(ModelError, match=f"{type(model).__name__} has no token embeddings"):
            token_embeddings(model)
