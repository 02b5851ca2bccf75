"""Adapters of the PEFT library: its methods are arms, its config fields are the arm's fields. A study with one imports PEFT."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from fairtune.core.errors import ModelError, shown
from fairtune.methods.base import Method, Moment, Step
from fairtune.methods.config import MethodConfig, MethodUse
from fairtune.methods.registry import register
from fairtune.settings.values import LONGEST_TEXT

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fairtune.models.declarations import Declared

NOT_INSTALLED = "the PEFT library is not installed; run `pip install 'fairtune[peft]'`"
INFRASTRUCTURE = {"peft_type", "auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "peft_version"}
"""Fields that say how an adapter is stored, not what it is."""
TASKS = {"ForSequenceClassification": "SEQ_CLS", "ForCausalLM": "CAUSAL_LM", "LMHeadModel": "CAUSAL_LM"}
"""The library's word for a task, by how the class of a model for it ends."""
ADDING = ("gaussian", "orthogonal")
"""Starts of LoRA that have a name and leave the weights alone; others (PiSSA, OLoRA) take their part out of them."""
AVERAGES = ("exp_avg_ipt", "exp_avg_unc")
"""What the allocator of AdaLoRA keeps from step to step, by parameter."""

UNFIT_TYPES = {
    "multitask_prompt_tuning": "it needs a task id in every batch",
    "poly": "it needs a task id in every batch",
    "shadow": "the card cannot describe the second network that it adds",
    "xlora": "it mixes adapters that are trained already",
}
"""Adapter types that need more than a model and its batches, or give more than a model."""
_OWN_LOSS = "its own term of the loss is left to the caller"
_OWN_LOADING = (
    "the library would load that tokenizer by itself, from anywhere, and ask in the terminal whether to run its code; use "
    "`prompt_tuning_init: SAMPLE_VOCAB` or RANDOM"
)
_FROM_DATA = dict.fromkeys(("eva", "corda", "lora_ga"), "this start is computed from data by a script of its own")
_UNFIT_FIELDS = {
    "use_asa": "what it keeps from step to step is lost when a run is interrupted",
    "arrow_config": "it mixes adapters that are trained already",
    "kasa_config": _OWN_LOSS,
    "monteclora_config": _OWN_LOSS,
    "megatron_config": "the library would import the module that it names",
    "tokenizer_kwargs": _OWN_LOADING,
    "tokenizer_name_or_path": _OWN_LOADING,
}


class PeftConfig(MethodConfig):
    """Train adapters of the PEFT library (LoRA, DoRA, IA3, VeRA, OFT ...) and the fresh head; all else is frozen."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(max_length=LONGEST_TEXT)] = Field(
        "lora",
        description="Which method of the library, by its name in lower case. Every field of the library's config for it "
        "may stand beside it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _check(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        settings = {str(name): value for name, value in given.items() if name != "type"}
        return _checked(given.get("type", "lora"), settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of the library's config that were given."""
        return dict(self.model_extra or {})

    @property
    def freezes(self) -> frozenset[str]:
        return frozenset({"embeddings"})

    def clash(self, before: Sequence[MethodUse], after: Sequence[MethodUse]) -> str | None:
        if any(use.name == "orthogonal_qk" for use in after):
            return (
                "it stands before 'orthogonal_qk', which would then change what the adapters were made for; list it after "
                "that"
            )
        freezing = next((use.name for use in before if "projections" in use.config.freezes), None)
        if freezing and "target_modules" not in self.settings and "target_modules" in _fields(self.type):
            return (
                f"'{freezing}' freezes the query and key projections, and the library's own choice of modules takes such; give "
                "`target_modules` without them, or let that method not freeze"
            )
        return None


@cache
def adapter_types() -> Mapping[str, type[Any]]:
    """The config classes of the adapter types that a study can use, by name.

    Raises:
        ValueError: the library is not installed.
    """
    try:
        from peft import PEFT_TYPE_TO_CONFIG_MAPPING
    except ImportError:
        raise ValueError(NOT_INSTALLED) from None
    found = {str(getattr(name, "value", name)).lower(): config for name, config in PEFT_TYPE_TO_CONFIG_MAPPING.items()}
    return dict(sorted((name, config) for name, config in found.items() if name not in UNFIT_TYPES))


@cache
def _fields(name: str) -> Mapping[str, TypeAdapter[Any]]:
    """The fields of an adapter type that a study can give, and what each takes."""
    config = adapter_types()[name]
    hints = get_type_hints(config)
    found: dict[str, TypeAdapter[Any]] = {}
    for field in dataclasses.fields(config):
        if field.init and field.name not in INFRASTRUCTURE:
            hint = hints[field.name]
            for word in re.findall(r"'(\w+_)\[[^']*\]'", str(hint)):  # `pissa_niter_[number of iters]` in the library
                hint |= Annotated[str, Field(pattern=rf"^{word}\w{{1,3}}$")]
            help = field.metadata.get("help", "")
            help = help if isinstance(help, str) else " ".join(help)
            hint = hint | None if field.default is None else hint
            described: Any = Annotated[hint, Field(description=" ".join(help.split()))]
            found[field.name] = TypeAdapter(described)
    return found


def _checked(name: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Type and settings as the library takes them; `dora` is its LoRA with one switch set.

    Raises:
        ValidationError: a field is unknown or has a value that the library would not take.
        ValueError: the library is not installed, or refuses the settings for what they are together.
    """
    known = adapter_types()
    dora = {"use_dora": True} if name == "dora" else {}
    if not isinstance(name, str) or name not in {*known, "dora"}:
        unfit = UNFIT_TYPES.get(name) if isinstance(name, str) else None
        problem = f"a study cannot train {name}: {unfit}" if unfit else _unknown("type", name, sorted({*known, "dora"}))
        raise _refusal([("type", name, problem)])
    name = "lora" if dora else name
    allowed = {field: adapter for field, adapter in _fields(name).items() if field not in dora}
    taken: dict[str, Any] = {}
    problems: list[tuple[str, Any, PydanticCustomError | str]] = []
    for field, value in settings.items():
        reason = _UNFIT_FIELDS.get(field) or (_FROM_DATA.get(str(value)) if field == "init_lora_weights" else None)
        if field not in allowed:
            problems.append((field, value, _unknown(f"field of {known[name].__name__}", field, allowed)))
        elif reason and value is not None and value is not False:
            problems.append((field, value, f"a study cannot use {shown(value)} here: {reason}"))
        else:
            try:  # as JSON, in which lists may be sets or tuples
                found = allowed[field].validate_json(json.dumps(value, allow_nan=False), strict=True)
                taken[field] = found if isinstance(found, float) else value
            except (TypeError, ValueError):
                fragment = {"fragment": allowed[field].json_schema()}
                problems.append((field, value, PydanticCustomError("field", "another type", fragment)))
    if problems:
        raise _refusal(problems)
    try:
        library_config(name, {**taken, **dora})
    except Exception as error:  # the library raises what it likes
        text = f"the PEFT library refuses this: {_first_line(error)}"
        place = next((field for field in settings if f"`{field}`" in text), None)
        raise (_refusal([(place, settings[place], text)]) if place else ValueError(text)) from None
    return {"type": name, **taken, **dora}


def library_config(name: str, settings: Mapping[str, Any]) -> Any:
    """The library's own config."""
    import peft

    return peft.get_peft_config({"peft_type": name.upper(), **copy.deepcopy(dict(settings))})


def _unknown(what: str, name: Any, allowed: Any) -> PydanticCustomError:
    return PydanticCustomError("unknown", "unknown", {"what": what, "name": str(name)[:60], "allowed": list(allowed)})


def _refusal(problems: Sequence[tuple[str, Any, PydanticCustomError | str]]) -> ValidationError:
    details = [
        InitErrorDetails(type="value_error", loc=(field,), input=value, ctx={"error": problem})
        if isinstance(problem, str)
        else InitErrorDetails(type=problem, loc=(field,), input=value)
        for field, value, problem in problems
    ]
    return ValidationError.from_exception_data("peft", details)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip()


@register
class Peft(Method):
    """With AdaLoRA's rank allocation, which the library leaves to the training loop."""

    name, config_class = "peft", PeftConfig
    excludes = frozenset({"choice of trainable parameters"})
    toy: ClassVar = {"target_modules": ["value"]}
    config: PeftConfig

    def __init__(self, config: PeftConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._tuner: Any = None
        self._gradients: list[tuple[nn.Parameter, Tensor]] = []

    def prepare(self, model: nn.Module) -> nn.Module:
        import torch

        from fairtune.models.model_parts import head_modules, head_parameters
        from fairtune.models.parameters import checkpoint_name

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
            with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
                torch.manual_seed(self.seed)
                wrapped: nn.Module = get_peft_model(model, config)
        except Exception as error:
            where = f" This model has the modules {places}." if "module" in str(error) else ""
            raise ModelError(f"peft {self.config.type}: {_first_line(error).rstrip('.')}.{where}") from None
        _keep_frozen(wrapped, frozen)
        trained = {checkpoint_name(name) for name, parameter in wrapped.named_parameters() if parameter.requires_grad}
        if task == "SEQ_CLS" and (fresh := head - frozen - trained):
            raise ModelError(
                f"peft {self.config.type}: the fresh head ({', '.join(sorted(fresh))}) would stay as it was drawn; this type of "
                "adapter has no `modules_to_save`."
            )
        if self.config.type == "adalora":
            self._tuner = wrapped.base_model
        return wrapped

    def changes(self, model: nn.Module) -> Sequence[Declared]:
        """Nothing, but where an adapter starts with a part of the weight and leaves the rest of it behind."""
        from peft.tuners.tuners_utils import BaseTunerLayer

        from fairtune.models.declarations import Declared

        start = self.config.settings.get("init_lora_weights")
        if not isinstance(start, str) or start in ADDING:
            return ()
        layers = [name for name, module in model.named_modules() if isinstance(module, BaseTunerLayer)]
        return [Declared(f"{name}.base_layer.weight") for name in layers]

    def around_backward(self, step: Step, proceed: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        loss = proceed()
        if self._tuner is not None:  # importance is made from gradients after the optimizer has dropped them
            self._gradients = [(p, p.grad) for p in self._tuner.parameters() if p.grad is not None]
        return loss

    def after_step(self, moment: Moment) -> None:
        if self._tuner is None:
            return
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        self._tuner.update_and_allocate(moment.step)
        for parameter, _ in self._gradients:
            parameter.grad = None
        self._gradients = []

    def plain(self, model: nn.Module) -> nn.Module:
        """The adapters folded into the weights; where the library cannot, the model with its adapters."""
        from peft.utils.other import AuxiliaryTrainingWrapper

        merge: Any = getattr(model, "merge_and_unload", None)
        if merge is None:  # prompts are not weights
            return model
        try:
            merged: nn.Module = merge()
        except NotImplementedError:
            return model
        for name, module in list(merged.named_modules()):
            if isinstance(module, AuxiliaryTrainingWrapper):  # some adapter types leave the head wrapped
                trained = module.unload_and_optionally_merge_module(merge=True, safe_merge=False, adapter_names=None)
                merged.set_submodule(name, trained)
        return merged

    def state_dict(self) -> dict[str, Any]:
        if self._tuner is None:
            return {}
        allocator = self._tuner.rankallocator
        averages = {f"{kind}.{name}": value for kind in AVERAGES for name, value in getattr(allocator, kind).items()}
        return {**averages, "rank_pattern": self._tuner.peft_config[self._tuner.trainable_adapter_name].rank_pattern}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:  # noqa: ARG002
        if self._tuner is None:
            return
        allocator = self._tuner.rankallocator
        allocator.reset_ipt()
        for key, value in state.items():
            average, _, name = key.partition(".")
            if average in AVERAGES:
                getattr(allocator, average)[name] = value
                allocator.ipt[name] = value.new_zeros(value.shape)
        self._tuner.peft_config[self._tuner.trainable_adapter_name].rank_pattern = state["rank_pattern"]


def _keep_frozen(model: nn.Module, frozen: set[str]) -> None:
    """What an earlier method froze stays frozen, and gets no adapter that would move it all the same."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    from fairtune.models.parameters import checkpoint_name

    for name, module in model.named_modules():
        if isinstance(module, BaseTunerLayer):
            inner = str(checkpoint_name(f"{name}.base_layer."))
            if any(known.startswith(inner) for known in frozen):
                raise ModelError(
                    f"{inner.rstrip('.')} is frozen by a method before peft, yet gets an adapter that changes what it computes; "
                    "give peft other `target_modules`, or let that method not freeze."
                )
    for name, parameter in model.named_parameters():
        if checkpoint_name(name) in frozen:
            parameter.requires_grad_(False)


def _places(model: nn.Module) -> str:
    """Modules that an adapter may go to: linear ones and normalisations, repeated layers once."""
    found = [
        re.sub(r"\.\d+\.", ".*.", name)
        for name, module in model.named_modules()
        if type(module).__name__ in ("Linear", "Conv1D") or "Norm" in type(module).__name__
    ]
    return ", ".join(dict.fromkeys(found)) or "no linear modules"
