"""BPSOMHead on one's own encoder: in a loop of one's own, and in transformers' Trainer, with this class and this callback:

    class Classifier(nn.Module):
        def __init__(self, encoder, **settings):
            super().__init__()
            self.encoder = encoder
            self.head = BPSOMHead(encoder.config.hidden_size, 2, **settings)

        def encode(self, input_ids, attention_mask):
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state[:, 0]

        def forward(self, input_ids, attention_mask, labels=None):
            logits = self.head(self.encode(input_ids, attention_mask), labels)
            return {"loss": None if labels is None else cross_entropy(logits, labels), "logits": logits}


    class Relabel(TrainerCallback):
        def on_epoch_begin(self, args, state, control, model, **_):
            left = 1 - (round(state.epoch or 0) + 1) / args.num_train_epochs
            model.head.radius, model.head.rate = radius_at(left, (2, 0)), rate_at(left, (0.2, 0.05))

        def on_epoch_end(self, args, state, control, model, optimizer, train_dataloader, **_):
            model.eval()
            with torch.no_grad():
                found = model.head.label((model.encode(b["input_ids"], b["attention_mask"]), b["labels"]) for b in train_dataloader)
            model.train()
            prune(model.head, units_to_keep(found.std, 0.02), found.mean, optimizer)

    model = Classifier(AutoModel.from_pretrained("bert-base-uncased"), hidden=128, grid=20)
    Trainer(model, TrainingArguments(...), train_dataset=data, callbacks=[Relabel()]).train()

With `gradient_accumulation_steps` the loss is divided on its way, so set `model.head.loss_scale` to one over them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoModel, Trainer, TrainerCallback, TrainingArguments

from fairtune import BPSOMHead
from fairtune.methods.bpsom.pruning import prune, units_to_keep
from fairtune.som.schedules import radius_at, rate_at


class Classifier(nn.Module):
    def __init__(self, encoder: Any, **settings: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = BPSOMHead(encoder.config.hidden_size, 2, **settings)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states: Tensor = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states[:, 0]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None) -> dict[str, Any]:
        logits = self.head(self.encode(input_ids, attention_mask), labels)
        return {"loss": None if labels is None else cross_entropy(logits, labels), "logits": logits}


class Relabel(TrainerCallback):
    def __init__(self, threshold: float = 0.02) -> None:
        self.threshold = threshold
        self.courses: list[tuple[int, float]] = []
        self.units: list[int] = []

    def on_epoch_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        left = 1 - (round(state.epoch or 0) + 1) / args.num_train_epochs
        model.head.radius, model.head.rate = radius_at(left, (2, 0)), rate_at(left, (0.2, 0.05))
        self.courses.append((model.head.radius, model.head.rate))

    def on_epoch_end(
        self,
        args: Any,  # noqa: ARG002
        state: Any,  # noqa: ARG002
        control: Any,  # noqa: ARG002
        model: Any = None,
        optimizer: Any = None,
        train_dataloader: Any = None,
        **_: Any,
    ) -> None:
        model.eval()
        with torch.no_grad():
            found = model.head.label(
                (model.encode(b["input_ids"], b["attention_mask"]), b["labels"]) for b in train_dataloader
            )
        model.train()
        prune(model.head, units_to_keep(found.std, self.threshold), found.mean, optimizer)
        self.units.append(model.head.units)


@pytest.fixture
def model(tiny_model: Path) -> Classifier:
    torch.manual_seed(0)
    return Classifier(
        AutoModel.from_pretrained(tiny_model, add_pooling_layer=False), hidden=12, grid=3, reliability=0.5
    )


def toy_texts(count: int = 32) -> list[dict[str, Tensor]]:
    """Texts of six tokens; the second decides the label."""
    generator = torch.Generator().manual_seed(3)
    found = []
    for number in range(count):
        ids = torch.randint(20, 60, (6,), generator=generator)
        ids[0], ids[1] = 2, 5 + number % 2
        found.append({"input_ids": ids, "attention_mask": torch.ones(6).long(), "labels": torch.tensor(number % 2)})
    return found


def test_in_a_loop_of_ones_own(model: Classifier) -> None:
    rows = toy_texts()
    batches = [{k: torch.stack([row[k] for row in rows[i : i + 8]]) for k in rows[0]} for i in range(0, len(rows), 8)]
    head, epochs = model.head, 4
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    uses, losses = [], []
    for epoch in range(epochs):
        left = (epochs - epoch - 1) / epochs
        head.radius, head.rate = radius_at(left, (2, 0)), rate_at(left, (0.2, 0.05))
        model.train()
        for batch in batches:
            loss = model(**batch)["loss"]
            loss.backward(), optimizer.step(), optimizer.zero_grad()
            losses.append(float(loss.detach()))
        model.eval()
        with torch.no_grad():
            found = head.label((model.encode(b["input_ids"], b["attention_mask"]), b["labels"]) for b in batches)
        prune(head, units_to_keep(found.std, float(found.std.median())), found.mean, optimizer)
        uses.append(head.take_use())
    assert uses[0] == 0.0, "no labels in the first epoch"
    assert uses[-1] > 0.3
    assert head.units < 12
    assert losses[-1] < losses[0]


def test_in_transformers_trainer(model: Classifier, tmp_path: Path) -> None:
    relabel = Relabel(threshold=2e-3)
    arguments = TrainingArguments(
        str(tmp_path), num_train_epochs=2, per_device_train_batch_size=8, learning_rate=5e-3, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True, logging_strategy="no", eval_strategy="epoch",
    )  # fmt: skip
    rows = toy_texts()
    before = model.head.som.prototypes.clone() if model.head.som else None
    trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows[:8], callbacks=[relabel])  # type: ignore[arg-type]
    trainer.train()
    assert relabel.courses == [(radius_at(0.5, (2, 0)), rate_at(0.5, (0.2, 0.05))), (0, 0.05)]
    assert relabel.units[-1] < 12
    assert int(model.head.seen) == 2 * len(rows), "the map saw each training example once per epoch, and no other"
    assert int(model.head.used) > 0
    assert model.head.som is not None
    assert before is not None
    assert not torch.equal(model.head.som.prototypes, before[:, : model.head.units])
    logits = trainer.predict(rows[:4]).predictions  # type: ignore[arg-type]
    assert logits.shape == (4, 2)
