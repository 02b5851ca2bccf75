"""Adapters of the PEFT library in a run, with AdaLoRA's rank allocation, which the library leaves to the training loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.methods.base import Method, Moment, Step
from fairtune.methods.peft import PeftConfig
from fairtune.methods.peft.checks import NOT_INSTALLED, library_config
from fairtune.models.declarations import Declared
from fairtune.models.model_parts import head_modules, head_parameters
from fairtune.models.parameters import checkpoint_name

AVERAGES = ("exp_avg_ipt", "exp_avg_unc")
"""What the library's allocator keeps from step to step, by parameter."""


TASKS = {"ForSequenceClassification": "SEQ_CLS", "ForCausalLM": "CAUSAL_LM", "LMHeadModel": "CAUSAL_LM"}
"""The library's word for a task, by how the class of a model for it ends."""
ADDING = ("gaussian", "orthogonal")
"""Starts of LoRA that have a name and leave the weights alone; others (PiSSA, OLoRA) take their part out of them."""


class RankAllocation:
    """Prunes ranks by their importance, as the library schedules it.

    Args:
        model: with AdaLoRA's adapters.
    """

    def __init__(self, model: nn.Module) -> None:
        self._tuner: Any = model.base_model
        self._gradients: list[tuple[nn.Parameter, Tensor]] = []

    def keep_gradients(self) -> None:
        """Remember the step's gradients: importance is made from them after the optimizer has dropped them."""
        self._gradients = [(p, p.grad) for p in self._tuner.parameters() if p.grad is not None]

    def allocate(self, step: int) -> None:
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        self._tuner.update_and_allocate(step)
        for parameter, _ in self._gradients:
            parameter.grad = None
        self._gradients = []

    def state_dict(self) -> dict[str, Any]:
        allocator = self._tuner.rankallocator
        averages = {
            f"{average}.{name}": value for average in AVERAGES for name, value in getattr(allocator, average).items()
        }
        return {**averages, "rank_pattern": self._config.rank_pattern}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        allocator = self._tuner.rankallocator
        allocator.reset_ipt()
        for key, value in state.items():
            average, _, name = key.partition(".")
            if average in AVERAGES:
                getattr(allocator, average)[name] = value
                allocator.ipt[name] = torch.zeros_like(value)
        self._config.rank_pattern = state["rank_pattern"]

    @property
    def _config(self) -> Any:
        return self._tuner.peft_config[self._tuner.trainable_adapter_name]


class Peft(Method):
    config: PeftConfig

    def __init__(self, config: PeftConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._allocation: RankAllocation | None = None

    def prepare(self, model: nn.Module) -> nn.Module:
        try:
            from peft import get_peft_model
        except ImportError:
            raise ModelError(NOT_INSTALLED) from None
        frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
        head, places = head_parameters(model), _places(model)
        task = next((task for ending, task in TASKS.items() if type(model).__name__.endswith(ending)), None)
        try:
            config = library_config(self.config.type, {"task_type": task, **self.config.settings})
            if task == "SEQ_CLS" and hasattr(config, "modules_to_save"):
                config.modules_to_save = sorted({*(config.modules_to_save or ()), *head_modules(model)})
            with _drawing_from(self.seed):
                wrapped: nn.Module = get_peft_model(model, config)
        except Exception as error:
            where = f" This model has the modules {places}." if "module" in str(error) else ""
            raise ModelError(f"peft {self.config.type}: {_first_line(error)}{where}") from None
        _keep_frozen(wrapped, frozen)
        if task == "SEQ_CLS":
            self._require_trained_head(wrapped, head - frozen)
        if self.config.type == "adalora":
            self._allocation = RankAllocation(wrapped)
        return wrapped

    def changes(self, model: nn.Module) -> Sequence[Declared]:
        """Nothing, but where an adapter starts with a part of the weight and leaves the rest of it behind."""
        from peft.tuners.tuners_utils import BaseTunerLayer

        start = self.config.settings.get("init_lora_weights")
        if not isinstance(start, str) or start in ADDING:
            return ()
        layers = [name for name, module in model.named_modules() if isinstance(module, BaseTunerLayer)]
        return [Declared(f"{name}.base_layer.weight") for name in layers]

    def around_backward(self, step: Step, proceed: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        loss = proceed()
        if self._allocation:
            self._allocation.keep_gradients()
        return loss

    def after_step(self, moment: Moment) -> None:
        if self._allocation:
            self._allocation.allocate(moment.step)

    def plain(self, model: nn.Module) -> nn.Module:
        """The adapters folded into the weights; where the library cannot, the model with its adapters."""
        merge: Any = getattr(model, "merge_and_unload", None)
        if merge is None:  # prompts are not weights
            return model
        try:
            merged: nn.Module = merge()
        except NotImplementedError:
            return model
        _unwrap(merged)
        return merged

    def state_dict(self) -> dict[str, Any]:
        return self._allocation.state_dict() if self._allocation else {}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:  # noqa: ARG002
        if self._allocation:
            self._allocation.load_state_dict(state)

    def _require_trained_head(self, model: nn.Module, head: set[str] | frozenset[str]) -> None:
        trained = {checkpoint_name(name) for name, parameter in model.named_parameters() if parameter.requires_grad}
        if not head <= trained:
            raise ModelError(
                f"peft {self.config.type}: the fresh head ({', '.join(sorted(head - trained))}) would stay as it was drawn; "
                "this type of adapter has no `modules_to_save`."
            )


@contextmanager
def _drawing_from(seed: int) -> Iterator[None]:
    """Draws depend on the seed alone, and leave the global generators as they were."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def _keep_frozen(model: nn.Module, frozen: set[str]) -> None:
    """What an earlier method froze stays frozen, and gets no adapter that would move it all the same."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, module in model.named_modules():
        if isinstance(module, BaseTunerLayer):
            inner = checkpoint_name(f"{name}.base_layer.")
            if any(known.startswith(str(inner)) for known in frozen):
                raise ModelError(
                    f"{str(inner).rstrip('.')} is frozen by a method before peft, yet gets an adapter that changes what it "
                    "computes; give peft other `target_modules`, or let that method not freeze."
                )
    for name, parameter in model.named_parameters():
        if checkpoint_name(name) in frozen:
            parameter.requires_grad_(False)


def _unwrap(model: nn.Module) -> None:
    """Put modules that were trained as a whole in their places; the merging of some adapter types leaves them wrapped."""
    from peft.utils.other import AuxiliaryTrainingWrapper

    for name, module in list(model.named_modules()):
        if isinstance(module, AuxiliaryTrainingWrapper):
            trained = module.unload_and_optionally_merge_module(merge=True, safe_merge=False, adapter_names=None)
            model.set_submodule(name, trained)


def _places(model: nn.Module) -> str:
    """Modules that an adapter may go to: linear ones and normalisations, repeated layers once."""
    found = [
        re.sub(r"\.\d+\.", ".*.", name)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D" or "Norm" in type(module).__name__
    ]
    return ", ".join(dict.fromkeys(found)) or "no linear modules"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if lines[0].endswith((".", "!", "?")) else f"{lines[0]}."
