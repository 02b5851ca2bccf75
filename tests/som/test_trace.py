"""The map against the printed log of the original program: which cells move, SOM errors, labels and reliabilities.

What the log prints, as worked out from it:

- `Class labeling SOM` has a block of three lines for each row y of the map, columns x across. First line: reliability in per
  cent, for every cell floor(100 majority / total), without exception. Second line: the label between hyphens, blank for a cell
  without one. Third line: how many examples of the *majority* class fell on the cell, not how many fell on it in all; the nine
  sum to the examples whose cell has their class.
- `weighted reliability` is the mean of the printed reliabilities weighted by those third lines, so not the mean over all examples.
- `SOM_ERROR` holds the reliability already: reliability/100 x (prototype after the move - activation). `ERROR` is
  (1 - alpha) BP_ERROR + alpha SOM_ERROR, or BP_ERROR where no SOM error was used (printed as 0).
- Activations have four decimals, errors five. With the printed activations no winner and no partial winner is ambiguous: all
  480 moves and all 480 labelled examples fall on the printed cells. SOM errors then agree to the rounding of the activations
  (1e-4), and to their own rounding (5e-6) with the activations of the network itself, see `test_classic.py`.
- `STD` is taken around the printed `AVG`: the mean of the learning pass before it, plus a 60th of the `AVG` before (the
  sum is not set back to 0 but to that mean).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from fairtune import SOM
from fairtune.som.schedules import radius_at, rate_at
from tests.som.printed import TRACE, Pass, read_log

EPOCHS, RADIUS, RATE, THRESHOLD, ALPHA = 8, (1, 0), (0.2, 0.05), 0.6, 0.25
CELLS = [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]


@pytest.fixture(scope="module")
def passes() -> list[Pass]:
    return read_log()


def names_and_classes() -> tuple[list[str], Tensor]:
    """The class names in their order, and the classes of the training examples."""
    (line,) = (line for line in (TRACE / "t.prm").read_text().splitlines() if line.startswith("ALL_LABELS"))
    names = [name[1:-1] for name in line.split(" = ")[1].split("|")]
    return names, torch.tensor([names.index(row[-1]) for row in (TRACE / "t.lrn").read_text().splitlines()])


def start() -> SOM:
    cells = [[float(number) for number in line.split()] for line in (TRACE / "init.env").read_text().splitlines()[-9:]]
    som = SOM(5, 3, 62, update="sequential", dtype=torch.float64)
    som.prototypes.copy_(torch.tensor(cells, dtype=torch.float64)[:, 2:])
    return som


def test_the_log_is_all_there(passes: list[Pass]) -> None:
    assert len(passes) == 4 * EPOCHS + 2
    for epoch in range(EPOCHS):
        learning, labelling, development, test = passes[4 * epoch : 4 * epoch + 4]
        assert len(learning.learned) == len(labelling.activations) == 60
        assert len(development.activations) == len(test.activations) == 30
        assert labelling.map is not None


def test_printed_activations_move_the_printed_cells_and_give_the_printed_labels(passes: list[Pass]) -> None:
    names, classes = names_and_classes()
    som, used = start(), 0
    for epoch in range(1, EPOCHS + 1):
        left = (EPOCHS - epoch) / EPOCHS
        radius, rate = radius_at(left, RADIUS), rate_at(left, RATE)
        for example, label in zip(passes[4 * epoch - 4].learned, classes, strict=True):
            h = torch.tensor([example.activations], dtype=torch.float64)
            (winner, _), (partial, _) = som.nearest(h, label[None])
            away = som.grid.distances()[int(winner)]
            assert example.moved == [(*CELLS[c], away[c]) for c in range(9) if away[c] <= radius]
            som.update(h, radius, rate)
            errors = np.array(example.errors)
            if partial < 0 or som.reliability[partial] < THRESHOLD:
                assert example.pulled_by is None
                assert (errors[:, 1] == 0).all()
                assert (errors[:, 2] == errors[:, 0]).all()
                continue
            used += 1
            assert example.pulled_by == CELLS[int(partial)]
            pull = som.reliability[partial] * (som.prototypes[partial] - h)
            np.testing.assert_allclose(pull[0], errors[:, 1], rtol=0, atol=1e-4)
            np.testing.assert_allclose(
                (1 - ALPHA) * errors[:, 0] + ALPHA * errors[:, 1], errors[:, 2], rtol=0, atol=1.01e-5
            )
        labelling = passes[4 * epoch - 3]
        som.label(torch.tensor(labelling.activations, dtype=torch.float64), classes)
        check_map(som, labelling, names)
    assert used == 89  # of 480: 0, 31.7, 20, 16.7, 18.3, 18.3, 21.7 and 21.7 % of 60


def check_map(som: SOM, labelling: Pass, names: list[str]) -> None:
    printed = labelling.map
    assert printed is not None
    labels = [None if label < 0 else names[label] for label in som.labels.tolist()]
    assert labels == [printed.label[cell] for cell in CELLS]
    assert som.reliability.tolist() == [printed.reliability[cell] / 100 for cell in CELLS]
    assert som.counts.amax(1).tolist() == [printed.third[cell] for cell in CELLS]
    weights = som.counts.amax(1).double()
    assert float((100 * som.reliability * weights).sum() / weights.sum()) == pytest.approx(printed.weighted, abs=5.1e-3)
