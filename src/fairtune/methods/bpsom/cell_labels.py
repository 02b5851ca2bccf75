"""A labelling pass of BP-SOM in a run, the pruning that it asks for, and their record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from fairtune.methods.base import Moment
from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.methods.bpsom.pruning import copies_of, prune, units_to_keep
from fairtune.models.model_parts import evaluating
from fairtune.models.parameters import count_parameters
from fairtune.som.labels import Labelling
from fairtune.som.som import ROWS_AT_ONCE, SOM

if TYPE_CHECKING:
    from fairtune.methods.bpsom import BPSOMConfig


def relabel(moment: Moment, head: BPSOMHead, units: list[int], config: BPSOMConfig) -> list[int]:
    """Label the map, prune and record; gives the units that are left, by their numbers in the head as it was drawn."""
    start, som = time.perf_counter(), head.som
    labelling = _labelling_pass(moment, head, som)
    std, threshold = labelling.std, config.prune
    keep = torch.ones_like(std, dtype=torch.bool) if threshold is None else units_to_keep(std, threshold)
    if threshold is not None and len(std) > 1 and float(std.max()) <= threshold:
        moment.warn(
            f"bpsom: at step {moment.step} every one of the {len(std)} hidden units varied by no more than prune "
            f"({threshold:g}); the one that varies most, by {float(std.max()):.2g}, was kept, or the head would have none."
        )
    numbers = torch.tensor(units)
    arrays = {
        "prototypes": som.prototypes.float(), "labels": som.labels, "reliability": som.reliability.float(),
        "counts": som.counts, "u_matrix": som.u_matrix().float(), "units": numbers, "mean": labelling.mean.float(),
        "std": std.float(), "histogram": labelling.histogram, "removed": numbers[~keep.cpu()],
    }  # fmt: skip
    arrays = {name: array.clone() for name, array in arrays.items()}
    figures = {
        "mean_reliability": labelling.mean_reliability,
        "labelled": float((som.labels >= 0).double().mean()),
        "quantisation_error": labelling.quantisation_error,
        "topographic_error": labelling.topographic_error,
        "examples": labelling.examples,
        "seconds": time.perf_counter() - start,
    }
    if not bool(keep.all()):
        prune(head, keep, labelling.mean, moment.optimizer, copies_of(head, moment))
        units = numbers[keep.cpu()].tolist()
    names = cast(Any, moment.model).config.id2label
    moment.record(
        "bpsom", arrays, columns=som.grid.columns, rows=som.grid.rows, topology=som.grid.topology,
        classes=[str(names[number]) for number in sorted(names)], use=head.take_use(), units=len(units),
        units_at_start=config.hidden, parameters=count_parameters(moment.model).total,
        head_parameters=sum(p.numel() for p in head.parameters()), radius=head.radius, rate=head.rate, alpha=head.alpha,
        threshold=head.reliability, prune=config.prune, **figures,
    )  # fmt: skip
    return units


def _labelling_pass(moment: Moment, head: BPSOMHead, som: SOM) -> Labelling:
    """Every training example once through the model as it is evaluated, its activations onto the map."""
    labelling = som.labelling()
    seen: list[Tensor] = []
    classes: list[Tensor] = []
    hook = head.out.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))

    def look() -> None:
        labelling.add(torch.cat(seen), torch.cat(classes))
        seen.clear()
        classes.clear()

    try:
        with evaluating(moment.model), torch.inference_mode():
            for batch in moment.train_batches():
                moment.model(**{name: value for name, value in batch.items() if name != "labels"})
                classes.append(batch["labels"])
                if sum(map(len, classes)) >= ROWS_AT_ONCE:  # the map looks at many in the time of few
                    look()
            if classes:
                look()
    finally:
        hook.remove()
    return labelling.finish()
