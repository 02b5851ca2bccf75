"""The classic example: it follows the original program to the last printed digit, and learns parity with fewer units."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.som.printed import TRACE, read_log

EXAMPLES = Path(__file__).parents[2] / "examples"
SINGLE = 1e-7  # three of 445 printed SOM errors are up to 6e-8 beyond their rounding: the original's maps are in single precision


@pytest.fixture(scope="module")
def classic() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("bpsom_classic")
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def original(classic: ModuleType) -> ModuleType:  # noqa: ARG001 - makes the folder importable
    return importlib.import_module("bpsom_original")


def output_of(
    classic: ModuleType, asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr(sys, "argv", ["bpsom_classic.py", *asked])
    classic.main()
    return capsys.readouterr().out


def test_the_command_prints_the_score_lines(
    classic: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = (TRACE / "stdout.txt").read_text().lstrip("\n")
    assert (
        output_of(classic, ["trace", str(TRACE)], monkeypatch, capsys) == printed + "\n"
    )  # the original's last line has no end
    assert printed.count("*") == 5


def test_every_activation_and_error_is_the_printed_one(original: ModuleType) -> None:
    passes = read_log()
    network, parts = original.load(TRACE)
    seen, correct = [], network.correct

    def watched(x: object, h: np.ndarray, o: object, away: object, pull: np.ndarray | None) -> object:
        plain, delta = correct(x, h, o, away, pull)
        seen.append((h, plain, np.zeros(5) if pull is None else pull, delta))
        return plain, delta

    network.correct = watched
    for epoch in range(1, network.settings.epochs + 1):
        network.learn(parts[0], epoch)
        std = network.label(parts[0])
        labelling = passes[4 * epoch - 3]
        np.testing.assert_allclose(network.activations(parts[0].x), labelling.activations, rtol=0, atol=5e-5 + SINGLE)
        np.testing.assert_allclose(std, labelling.std, rtol=0, atol=5e-4 + SINGLE)
    printed = [example for learning in passes[0:32:4] for example in learning.learned]
    assert len(seen) == len(printed) == 480
    for (h, *errors), example in zip(seen, printed, strict=True):
        np.testing.assert_allclose(h, example.activations, rtol=0, atol=5e-5 + SINGLE)
        np.testing.assert_allclose(np.stack(errors, axis=1), example.errors, rtol=0, atol=5e-6 + SINGLE)


def test_pruning_keeps_the_mean_contribution_and_the_unit_that_moves_up_waits(classic: ModuleType) -> None:
    settings = classic.Settings(epochs=1, hidden=6, grid=2, patience=1)
    network = classic.new_network(settings, 3, 2, seed=0)
    network.mean = np.linspace(0.1, 0.9, 6)
    before, prototypes = network.out.copy(), network.som.prototypes.clone()
    assert network.prune(np.array([0.5, 0.01, 0.01, 0.3, 0.02, 0.4])) == 2  # 2 moves into the place of 1
    assert network.into.shape == (4, 4)
    assert (network.som.prototypes == prototypes[:, [0, 2, 3, 5]]).all()
    np.testing.assert_allclose(network.out[1:], before[[1, 3, 4, 6]])
    np.testing.assert_allclose(network.out[0], before[0] + network_mean(1) * before[2] + network_mean(4) * before[5])
    assert network.prune(np.array([0.5, 0.01, 0.3, 0.4])) == 1
    for _ in range(4):
        network.prune(np.zeros(len(network.mean)))
    assert len(network.mean) == 1  # the last unit stays


def network_mean(unit: int) -> float:
    return float(np.linspace(0.1, 0.9, 6)[unit])


def test_parity_is_learned_and_units_are_pruned(classic: ModuleType) -> None:
    settings = classic.Settings(epochs=100, hidden=10, grid=3, patience=100, alpha=0.05, lr=1.0, momentum=0.8)
    parts = classic.parity_parts(bits=5, training=24, development=4, seed=1)
    network = classic.new_network(settings, 5, 2, 1)
    scores: list[object] = []
    classic.train(network, *parts, scores.append)
    last = network.look(parts[0], 100, 1)
    assert last.wrong == 0
    assert last.units < 10
    assert max(score.used for score in scores) > 50
