"""What methods declare to change at the start, so that the init card can tell an intended change from an unintended one."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fairtune.models.parameters import checkpoint_name

FEW = 3


@dataclass(frozen=True)
class Declared:
    """A tensor, or all tensors of a module, that a method may change, replace or take away.

    Args:
        name: of the tensor or the module, in the model that `prepare` returned or in the one it was given.
        rows: those of a fused weight that may change; None for all of it.
        dim: along which the rows lie.
    """

    name: str
    rows: Tensor | None = None
    dim: int = 0

    def covers(self, name: str) -> bool:
        return name == self.name or name.startswith(f"{self.name}.")


@dataclass(frozen=True)
class Declarations:
    """What the methods of an arm declare, by method and in their order."""

    methods: tuple[tuple[str, tuple[Declared, ...]], ...] = ()

    def with_method(self, method: str, declared: Sequence[Declared], known: Container[str]) -> Declarations:
        """These and a method's own, under the names that the checkpoint has."""
        own = tuple(replace(one, name=checkpoint_name(one.name, known) or one.name) for one in declared)
        return Declarations((*self.methods, (method, own)))

    def cover(self, name: str) -> bool:
        """Whether a tensor may be taken away or replaced."""
        return any(one.covers(name) and one.rows is None for _, own in self.methods for one in own)

    def allow(self, name: str, found: Tensor, reference: Tensor) -> bool:
        """Whether a tensor may differ from the checkpoint's as it does: by what one method declares, or several together."""
        covering = [one for _, own in self.methods for one in own if one.covers(name)]
        rows = [one.rows.cpu() for one in covering if one.rows is not None]
        if len(rows) < len(covering):
            return True
        if not rows or found.shape != reference.shape:
            return False
        dim = covering[0].dim
        kept = torch.ones(found.shape[dim], dtype=torch.bool)
        kept[torch.cat(rows)] = False
        places = kept.nonzero().flatten()
        return torch.equal(found.index_select(dim, places), reference.index_select(dim, places))

    def __str__(self) -> str:
        names = {method: list(dict.fromkeys(one.name for one in own)) for method, own in self.methods}
        few = {method: f"{len(own)} ({', '.join(own[:FEW])} ...)" if own else "none" for method, own in names.items()}
        return "; ".join(f"{method} declares {listed}" for method, listed in few.items())


Digests = Mapping[str, bytes]
"""What is remembered of tensors that are in no file, such as a fresh head's, from before the methods changed anything."""
