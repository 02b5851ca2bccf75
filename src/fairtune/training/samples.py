"""What a trained language model writes: continuations of fixed prompts, the same for every arm and every seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fairtune.core.seeding import seed_all
from fairtune.training.language_modelling import LanguageModelling
from fairtune.training.loop import TrainingRun
from fairtune.training.objectives import scoring

PROMPTS, PROMPT_TOKENS, NEW_TOKENS = 3, 16, 60
TEMPERATURE, TOP_K = 0.8, 50
SEED = 20261116
"""The draws of a continuation are the same for all arms, so that a difference in text is one of the models."""


def continuations(run: TrainingRun, tokenizer: Any, prompts: Sequence[str] | None) -> list[dict[str, str]]:
    """Let the model go on with each prompt, or with the beginnings of some validation texts.

    Returns:
        The prompt and what the model adds to it, for each.
    """
    assert isinstance(run.objective, LanguageModelling)
    model: Any = run.accelerator.unwrap_model(run.model)
    texts = prompts or _beginnings(run.objective, tokenizer)
    found = []
    with scoring(model, run.methods), run.accelerator.autocast():
        for text in texts:
            run.check_stop()
            found.append({"prompt": text, "continuation": _continued(model, tokenizer, text, run)})
    return found


def _beginnings(objective: LanguageModelling, tokenizer: Any) -> list[str]:
    """The beginnings of the first validation texts, whole words only where that leaves anything."""
    text = objective.text["validation"]
    ends = text.documents[:, 0].cumsum()
    found = []
    for end, size in zip(ends.tolist(), text.documents[:, 0].tolist(), strict=True):
        first = end - size + text.edges - 1  # after BOS, where there is one
        part = str(tokenizer.decode(text.stream[first : min(first + PROMPT_TOKENS, end - 1)].tolist()))
        whole = part.rpartition(" ")[0].rstrip() or part
        if whole and whole not in found:
            found.append(whole)
        if len(found) == PROMPTS:
            break
    return found


def _continued(model: Any, tokenizer: Any, text: str, run: TrainingRun) -> str:
    """What comes after a text that begins a document, within the length that the model was trained on."""
    assert isinstance(run.objective, LanguageModelling)
    blocks, length = run.objective.text["train"], run.objective.length
    given = [blocks.eos if blocks.bos is None else blocks.bos, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    new = min(NEW_TOKENS, max(length - len(given), length // 2))  # of a longer prompt the model sees the end
    ids = torch.tensor([given[-(length - new) :]], device=run.device)
    seed_all(SEED)
    answer = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new,
        do_sample=True,
        temperature=TEMPERATURE,
        top_k=TOP_K,
        top_p=1.0,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id,
    )
    return str(tokenizer.decode(answer[0, ids.shape[1] :], skip_special_tokens=True))
