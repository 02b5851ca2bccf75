"""The init-diff card: which tensors differ from the checkpoint at step 0 and by how much, and which are trainable.

The reference is the checkpoint's file itself, not a copy of what was loaded, so that a fault of loading shows too. A model that is
trained from scratch is drawn once more, from the same state of the generator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from safetensors import safe_open
from torch import Tensor, nn

from fairtune.core.errors import RunFailure
from fairtune.models.declarations import Declarations, Digests
from fairtune.models.folder_safety import weight_files
from fairtune.models.loader import LoadedModel
from fairtune.models.parameters import ParameterCount, checkpoint_name, count_parameters
from fairtune.models.transformers_files import explain_failure


@dataclass(frozen=True)
class TensorChange:
    """A tensor that is not the checkpoint's.

    Args:
        relative: norm of the difference over the norm of the checkpoint's tensor.
        trainable: partly, if it is a fused projection that was cut.
    """

    name: str
    max_abs: float
    relative: float
    cosine: float
    trainable: bool | Literal["partly"]


@dataclass(frozen=True)
class InitCard:
    """What a run starts from.

    Args:
        same: how many tensors equal the checkpoint's bit for bit.
        new: tensors the checkpoint does not have (a fresh head, a method's own).
        unverified: tensors whose name is not in the checkpoint's file though transformers loaded them.
        undeclared: tensors that are not as they were loaded or drawn, though no method declares to change them.
    """

    same: int
    changed: tuple[TensorChange, ...]
    new: tuple[str, ...]
    unverified: tuple[str, ...]
    frozen: tuple[str, ...]
    parameters: ParameterCount
    undeclared: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        known = {name: value for name, value in asdict(self).items() if name != "undeclared"}  # empty in every run
        return {**known, "parameters": self.parameters.as_json()}

    def require_untouched(self, unread: Collection[str] = ()) -> None:
        """A baseline is the untouched checkpoint, trainable except for tensors that it has no use for, or it is no baseline."""
        if self.changed:
            names = ", ".join(c.name for c in self.changed[:3])
            raise RunFailure(
                f"this arm has no methods, yet {len(self.changed)} tensors differ from the checkpoint at step 0 ({names} ...); "
                "a baseline must be the untouched checkpoint"
            )
        frozen = [name for name in self.frozen if name not in unread]
        if frozen:
            raise RunFailure(f"this arm has no methods, yet {len(frozen)} tensors are frozen ({frozen[0]} ...)")

    def require_declared(self, declared: Declarations) -> None:
        """Methods change what they say they change, and nothing else."""
        if not self.undeclared:
            return
        names = ", ".join(self.undeclared[:3]) + (" ..." if len(self.undeclared) > 3 else "")
        raise RunFailure(
            f"{len(self.undeclared)} tensors differ from the checkpoint at step 0 though no method of this arm declares to change "
            f"them ({names}); of the tensors that `prepare` may change, {declared}"
        )


def digests_outside(loaded: LoadedModel) -> Digests:
    """Digests of the tensors that no file can prove: a fresh head's, and those whose names are not in the checkpoint's files."""
    if loaded.rebuilt is not None:
        return {}
    shared = _shared_names(loaded.network)
    found = {}
    with _reference(loaded) as checkpoint:
        for name, tensor in loaded.network.state_dict().items():
            names = shared.get(name, [name])
            if names and not any(n in loaded.from_checkpoint and checkpoint(n) is not None for n in names):
                found[name] = _digest(tensor)
    return found


def make_init_card(
    model: nn.Module, loaded: LoadedModel, declared: Declarations | None = None, outside: Digests | None = None
) -> InitCard:
    """Compare a prepared model with what it was loaded from or drawn as, `outside` being of before methods changed anything."""
    declared, outside = declared or Declarations(), outside or {}
    same, changed, new, unverified, undeclared = 0, [], [], [], []
    gone = set(loaded.from_checkpoint) | outside.keys()
    trainable = {name for name, p in model.named_parameters() if p.requires_grad}
    shared = _shared_names(model)
    with _reference(loaded) as checkpoint:
        for own_name, tensor in model.state_dict().items():
            every = (checkpoint_name(own, loaded.from_checkpoint) for own in shared.get(own_name, [own_name]))
            names = sorted((one for one in every if one is not None), key=lambda one: one not in loaded.from_checkpoint)
            if not names:  # a copy that nothing uses
                continue
            name = names[0]
            gone.difference_update(names)
            if name in outside and _digest(tensor) != outside[name] and not declared.cover(name):
                undeclared.append(name)
            if name not in loaded.from_checkpoint:
                new.append(name)
                continue
            reference = next((found for n in names if (found := checkpoint(n)) is not None), None)
            if reference is None:
                unverified.append(name)
                continue
            reference = reference.to(tensor.dtype)
            found = tensor.detach().cpu()
            if torch.equal(found, reference):
                same += 1
            else:
                changed.append(_change(name, found, reference, _trains(own_name, trainable)))
                if not declared.allow(name, found, reference):
                    undeclared.append(name)
    frozen = tuple(
        known
        for own, p in model.named_parameters()
        if not p.requires_grad and (known := checkpoint_name(own)) is not None
    )
    undeclared += sorted(name for name in gone if not declared.cover(name))
    return InitCard(
        same, tuple(changed), tuple(new), tuple(unverified), frozen, count_parameters(model), tuple(dict.fromkeys(undeclared))
    )  # fmt: skip


@contextmanager
def _reference(loaded: LoadedModel) -> Iterator[Callable[[str], Tensor | None]]:
    """Gives tensors by name: read from the checkpoint's files one at a time, or drawn once more, independently of the model."""
    if loaded.rebuilt is not None or loaded.folder is None:
        tensors = loaded.rebuilt() if loaded.rebuilt is not None else {}
        yield tensors.get
        return
    prefix = str(getattr(loaded.network, "base_model_prefix", ""))
    with ExitStack() as stack:
        homes: dict[str, Any] = {}
        for file in weight_files(loaded.folder):
            with explain_failure(f"{file} is damaged"):
                handle = stack.enter_context(safe_open(str(file), framework="pt"))
            homes.update(dict.fromkeys(handle.keys(), handle))

        def get(name: str) -> Tensor | None:
            found = next((known for known in _file_names(name, prefix) if known in homes), None)
            return None if found is None else homes[found].get_tensor(found)

        yield get


def _file_names(name: str, prefix: str) -> Iterator[str]:
    """A base model's file lacks the prefix that a model with a head adds; old files have other names for norms and heads."""
    for known in (name, name.removeprefix(f"{prefix}."), f"{prefix}.{name}", name.replace("lm_head.", "embed_out.")):
        yield known
        if "LayerNorm." in known:
            yield known.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def frozen_fingerprint(model: nn.Module) -> str:
    """sha256 over every frozen parameter: equal before and after training, or something moved that must not."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            digest.update(name.encode())
            digest.update(_bytes(parameter))
    return digest.hexdigest()


def _digest(tensor: Tensor) -> bytes:
    return hashlib.sha256(_bytes(tensor)).digest()


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _shared_names(model: nn.Module) -> dict[str, list[str]]:
    """All names of each parameter by its first; by its others, none, so that a tied tensor counts once."""
    first: dict[int, str] = {}
    names: dict[str, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names[name] = []
        names[first.setdefault(id(parameter), name)].append(name)
    return names


def _trains(name: str, trainable: set[str]) -> bool | Literal["partly"]:
    inside = name.rpartition(".")[0] + "."
    return name in trainable or ("partly" if any(other.startswith(inside) for other in trainable) else False)


def _change(name: str, found: Tensor, reference: Tensor, trainable: bool | Literal["partly"]) -> TensorChange:
    if found.shape != reference.shape:
        return TensorChange(name, float("inf"), float("inf"), 0.0, trainable)
    a, b = found.double().flatten(), reference.double().flatten()
    difference = a - b
    norm = float(b.norm())
    return TensorChange(
        name,
        max_abs=float(difference.abs().max()),
        relative=float(difference.norm()) / norm if norm else float("inf"),
        cosine=float(torch.nn.functional.cosine_similarity(a, b, dim=0)),
        trainable=trainable,
    )
