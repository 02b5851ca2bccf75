"""fairtune: fair trials of transformer training methods."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairtune.core import __version__

if TYPE_CHECKING:
    from fairtune.analysis.results import Results
    from fairtune.api import load_suite_results, run_study, run_suite, time_study
    from fairtune.classifier.text_classifier import TextClassifier
    from fairtune.core.errors import FairtuneError
    from fairtune.export import export_model
    from fairtune.methods.adversarial.perturbation import adversarial_backward
    from fairtune.methods.augment import augment_texts
    from fairtune.methods.bpsom.head import BPSOMHead
    from fairtune.methods.ema import EMA
    from fairtune.methods.focal import FocalLoss
    from fairtune.methods.layerwise_lr import layerwise_groups
    from fairtune.methods.orthogonal_qk.card import OrthogonalCard, orthogonalize_qk
    from fairtune.methods.orthogonal_qk.weights import orthogonalize_heads_
    from fairtune.methods.rdrop import rdrop_loss
    from fairtune.methods.weighted_ce import weighted_cross_entropy
    from fairtune.models.attention_layouts import register_attention
    from fairtune.report.study_results import StudyResults, load_results
    from fairtune.som.som import SOM
    from fairtune.study.plan import make_plan
    from fairtune.study.schema import Study
    from fairtune.study.study_file import load_study

_HOMES = {
    "BPSOMHead": "fairtune.methods.bpsom.head",
    "EMA": "fairtune.methods.ema",
    "FairtuneError": "fairtune.core.errors",
    "FocalLoss": "fairtune.methods.focal",
    "OrthogonalCard": "fairtune.methods.orthogonal_qk.card",
    "Results": "fairtune.analysis.results",
    "SOM": "fairtune.som.som",
    "Study": "fairtune.study.schema",
    "StudyResults": "fairtune.report.study_results",
    "TextClassifier": "fairtune.classifier.text_classifier",
    "adversarial_backward": "fairtune.methods.adversarial.perturbation",
    "augment_texts": "fairtune.methods.augment",
    "export_model": "fairtune.export",
    "layerwise_groups": "fairtune.methods.layerwise_lr",
    "load_results": "fairtune.report.study_results",
    "load_study": "fairtune.study.study_file",
    "make_plan": "fairtune.study.plan",
    "orthogonalize_heads_": "fairtune.methods.orthogonal_qk.weights",
    "orthogonalize_qk": "fairtune.methods.orthogonal_qk.card",
    "rdrop_loss": "fairtune.methods.rdrop",
    "register_attention": "fairtune.models.attention_layouts",
    "run_study": "fairtune.api",
    "load_suite_results": "fairtune.api",
    "run_suite": "fairtune.api",
    "time_study": "fairtune.api",
    "weighted_cross_entropy": "fairtune.methods.weighted_ce",
}
__all__ = [
    "EMA",
    "SOM",
    "BPSOMHead",
    "FairtuneError",
    "FocalLoss",
    "OrthogonalCard",
    "Results",
    "Study",
    "StudyResults",
    "TextClassifier",
    "__version__",
    "adversarial_backward",
    "augment_texts",
    "export_model",
    "layerwise_groups",
    "load_results",
    "load_study",
    "load_suite_results",
    "make_plan",
    "orthogonalize_heads_",
    "orthogonalize_qk",
    "rdrop_loss",
    "register_attention",
    "run_study",
    "run_suite",
    "time_study",
    "weighted_cross_entropy",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import fairtune` and `--help` answer at once."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fairtune' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
