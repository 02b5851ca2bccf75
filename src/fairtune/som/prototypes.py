"""The prototypes of a map: finding the nearest ones, moving them, and what is refused before anything is changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from fairtune.core.errors import DataError, ModelError, nearest, one_of
from fairtune.core.grid import Grid, Topology
from fairtune.som.distances import (
    Winners,
    first_nearest,
    last_nearest_labelled,
    relative_squared_distances,
    squared_distances,
    winners_of,
)
from fairtune.som.moves import move_batch, move_one_by_one

UPDATES = ("batch", "sequential")


class Prototypes(nn.Module):
    """A map of prototypes that finds winners and moves: buffers only, nothing of it is in an autograd graph.

    Cells are numbered as in `Grid`. A cell's label is -1 until a labelling pass gives it one. `SOM` says what the arguments are.
    """

    prototypes: Tensor
    labels: Tensor
    reliability: Tensor
    counts: Tensor
    steps: Tensor
    halves: Tensor

    def __init__(
        self,
        features: int,
        grid: int | Sequence[int] = 10,
        classes: int = 0,
        *,
        topology: Topology = "rectangular",
        update: Literal["batch", "sequential"] = "batch",
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.grid = Grid.of(grid, topology)
        if features < 1:
            raise ModelError(f"features: {features} is not a width; give a whole number of at least 1")
        if classes < 0 or classes == 1:
            raise ModelError(f"classes: {classes} cannot be told apart; give at least 2, or 0 for a map without labels")
        if update not in UPDATES:
            raise ModelError(
                f"update: '{update}' is not known; allowed are {one_of(UPDATES)}.{nearest(update, UPDATES)}"
            )
        if dtype not in (torch.float32, torch.float64):
            raise ModelError(
                f"dtype: a map in {dtype} would round its small steps away; use torch.float32 or torch.float64"
            )
        self.classes = classes
        self.mode = update
        cells, generator = self.grid.cells, torch.Generator().manual_seed(seed)
        start = 0.2 + 0.6 * torch.rand(cells, features, generator=generator, dtype=dtype)
        self.register_buffer("prototypes", start)
        self.register_buffer("labels", torch.full((cells,), -1, dtype=torch.int64))
        self.register_buffer("reliability", torch.zeros(cells, dtype=dtype))
        self.register_buffer("counts", torch.zeros(cells, classes, dtype=torch.int64))
        self.register_buffer("steps", torch.from_numpy(self.grid.distances()), persistent=False)
        self.register_buffer("halves", torch.exp2(-self.steps.to(dtype)), persistent=False)

    @property
    def features(self) -> int:
        """Width of the examples."""
        return self.prototypes.shape[1]

    def extra_repr(self) -> str:
        grid = self.grid
        return (
            f"features={self.features}, {grid.columns}x{grid.rows} {grid.topology}, classes={self.classes}, {self.mode}"
        )

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Goes to a device or to float64 with its model, but keeps its precision where the model goes to half precision."""
        kept = {name: getattr(self, name) for name in ("prototypes", "reliability", "halves")}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in kept.items():
            after = getattr(self, name)
            if after.dtype.itemsize < 4:
                setattr(self, name, before.to(after.device))
        return self

    def checked(self, x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Examples and classes as the map computes with them; refused if they do not fit."""
        rows = checked_rows(x, self.prototypes)
        return rows, checked_classes(classes, len(rows), self.classes, rows.device)

    def distances_to_cells(self, rows: Tensor) -> Tensor:
        """How far checked examples are from all cells, [examples, cells]; to be compared within an example only."""
        with torch.autocast(rows.device.type, enabled=False):  # the product would be in half precision
            return (squared_distances if self.mode == "sequential" else relative_squared_distances)(
                rows, self.prototypes
            )

    @torch.no_grad()
    def winners(self, x: Tensor) -> Winners:
        """The nearest cell of each example, the first on ties."""
        rows = checked_rows(x, self.prototypes)
        return winners_of(first_nearest(self.distances_to_cells(rows)), rows, self.prototypes)

    @torch.no_grad()
    def nearest(self, x: Tensor, classes: Tensor) -> tuple[Winners, Winners]:
        """Winners and partial winners, from one matrix of distances."""
        rows, classes = self.checked(x, classes)
        distances = self.distances_to_cells(rows)
        partial = last_nearest_labelled(distances, self.labels, classes)
        return (
            winners_of(first_nearest(distances), rows, self.prototypes),
            winners_of(partial, rows, self.prototypes),
        )

    @torch.no_grad()
    def partial_winners(self, x: Tensor, classes: Tensor) -> Winners:
        """The nearest among the cells labelled with the example's class, the last on ties; cell -1 if there is none."""
        rows, classes = self.checked(x, classes)
        return winners_of(
            last_nearest_labelled(self.distances_to_cells(rows), self.labels, classes), rows, self.prototypes
        )

    @torch.no_grad()
    def update(self, x: Tensor, radius: int, rate: float, winners: Winners | None = None) -> Winners:
        """Moves the winners and the cells within the radius around them towards the examples; returns the winners.

        Args:
            rate: of the winner; it halves with each step away from it.
            winners: of these examples on the map as it is, if they are known. The sequential way does not use them: there
                an example's winner depends on the examples before it.
        """
        check_step(radius, rate)
        rows = checked_rows(x, self.prototypes)
        return self.move(rows, radius, rate, winners)

    def move(self, rows: Tensor, radius: int, rate: float, winners: Winners | None = None) -> Winners:
        """As `update`, for examples that were checked before."""
        if self.mode == "sequential":
            return move_one_by_one(self.prototypes, self.steps.cpu().numpy(), rows, radius, rate)
        if winners is None:
            winners = winners_of(first_nearest(self.distances_to_cells(rows)), rows, self.prototypes)
        move_batch(self.prototypes, self.halves, rows, winners, radius, rate)
        return winners

    def keep(self, units: Tensor) -> None:
        """Keeps these columns of the prototypes, given as a mask or by number, and forgets the others."""
        kept = self.prototypes[:, units.to(self.prototypes.device)]
        if kept.shape[1] == 0:
            raise ModelError("map: it cannot be without columns; keep at least one unit")
        self.prototypes = kept.clone()

    def resize(self, features: int) -> None:
        """Makes room for prototypes of another width, before a state of that width is loaded; the present ones are lost."""
        if features < 1:
            raise ModelError(f"features: {features} is not a width; give a whole number of at least 1")
        self.prototypes = self.prototypes.new_zeros(self.grid.cells, features)


def checked_rows(x: Tensor, prototypes: Tensor) -> Tensor:
    """The examples in the map's dtype and on its device, outside any graph."""
    x = torch.as_tensor(x)
    features = prototypes.shape[1]
    if x.dim() != 2 or x.shape[1] != features:
        raise ModelError(f"map: examples of shape {list(x.shape)} do not fit; it takes [examples, {features}]")
    rows = x.detach().to(device=prototypes.device, dtype=prototypes.dtype)
    if not math.isfinite(float(rows.sum())):  # one number to look at; a sum of finite numbers may still overflow
        bad = (~torch.isfinite(rows)).any(1)
        if bool(bad.any()):
            raise DataError(
                f"map: {int(bad.sum())} of {len(rows)} examples hold NaN or infinite numbers (the first is example "
                f"{int(bad.nonzero()[0])}); the map was not changed. Look for a learning rate that is too high or a broken input"
            )
    return rows


def checked_classes(classes: Tensor, examples: int, known: int, device: torch.device) -> Tensor:
    """The classes of the examples as whole numbers on the map's device."""
    classes = torch.as_tensor(classes)
    if known == 0:
        raise ModelError(
            "map: it was made without classes, so its cells have no labels; make it with SOM(..., classes=n)"
        )
    if classes.shape != (examples,):
        raise ModelError(
            f"map: classes of shape {list(classes.shape)} do not fit {examples} examples; give one per row"
        )
    if classes.is_floating_point() or classes.is_complex() or classes.dtype == torch.bool:
        raise ModelError(f"map: classes are {classes.dtype}; give whole numbers from 0 to {known - 1}")
    classes = classes.detach().to(device=device, dtype=torch.int64)
    if examples:
        low, high = (int(end) for end in torch.stack(classes.aminmax()))
        if low < 0 or high >= known:
            raise DataError(
                f"map: class {low if low < 0 else high} is outside 0 to {known - 1}; examples without a label (-1) cannot be used"
            )
    return classes


def check_step(radius: int, rate: float) -> None:
    """Refuses a neighbourhood or a rate that would not move a cell towards an example."""
    if radius < 0 or radius != int(radius):
        raise ModelError(f"radius: {radius} is not a number of steps; give a whole number of at least 0")
    if not 0 <= rate <= 1:
        raise ModelError(f"rate: {rate} is outside 0 to 1; beyond 1 a cell would overshoot its example")
