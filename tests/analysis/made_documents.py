"""Language models' scores made by hand: documents of different length and difficulty, with the luck of seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtune.analysis.resampling import Documents
from fairtune.analysis.statistics import PairedDifference, paired_difference


def simulate(
    generator: np.random.Generator, seeds: int, documents: int, effect: float = 0.0, spread: float = 0.02
) -> dict[str, Any]:
    """Two arms on the same documents; `effect` adds to the loss per token of ours."""
    tokens = np.maximum(2, generator.lognormal(4, 0.8, documents).round())
    difficulty = generator.normal(2.0, 0.5, documents)
    taste = generator.normal(0, 0.1, documents)  # documents that suit one arm better than the other, on average none

    def arm(shift: float, share: float) -> list[Documents]:
        found = []
        for luck in generator.normal(0, spread, seeds):
            loss = difficulty + shift + luck + share * taste + generator.normal(0, 0.5 / np.sqrt(tokens))
            found.append(Documents(np.stack([tokens * loss, tokens, 5 * tokens, 0.8 * tokens, tokens // 3], axis=1)))
        return found

    return {"ours": arm(effect, 0.5), "theirs": arm(0.0, -0.5)}


def perplexities(runs: list[Documents]) -> list[float]:
    return [float(np.exp(run.sums[:, 0].sum() / run.sums[:, 1].sum())) for run in runs]


def compare(data: dict[str, Any], confidence: float = 0.95) -> PairedDifference:
    """Perplexities are compared by their ratio, so differences are those of logarithms."""
    by_seed = np.subtract(np.log(perplexities(data["ours"])), np.log(perplexities(data["theirs"])))
    return paired_difference(data["ours"], data["theirs"], "perplexity", by_seed.tolist(), confidence)
