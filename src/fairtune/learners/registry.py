"""The simple learners by name, and reading one that was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtune.core.errors import ModelError
from fairtune.core.files import read_json
from fairtune.learners.base import FACTS, FORMAT, TENSORS, ChosenSetting, FittedLearner
from fairtune.learners.knn_probe import NearestNeighbours
from fairtune.learners.linear_probe import LinearProbe, SetFitHead
from fairtune.learners.majority import MajorityClass
from fairtune.learners.tfidf import NaiveBayes, Tfidf

KINDS: dict[str, type[FittedLearner]] = {
    kind.name: kind for kind in (MajorityClass, Tfidf, NaiveBayes, LinearProbe, NearestNeighbours, SetFitHead)
}


def load_learner(folder: Path) -> tuple[FittedLearner, dict[str, Any]]:
    """A learner that was kept, and all that was kept with it.

    Raises:
        ModelError: there is none, or it is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        facts: Any = read_json(folder / FACTS)
        arrays = load((folder / TENSORS).read_bytes())
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}, of another version of fairtune")
        kind, choice = KINDS[facts["learner"]], ChosenSetting(dict(facts["chosen"]))
        return kind(int(facts["classes"]), choice, arrays, facts["facts"]), facts
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise ModelError(f"{folder}: the learner in it cannot be read ({type(error).__name__}: {error}).") from None
