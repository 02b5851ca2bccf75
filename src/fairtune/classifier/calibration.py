"""Calibrated probabilities: one temperature, found on the validation split and folded into the model's last layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch import Tensor, nn

from fairtune.classifier.errors import UnusableModelError
from fairtune.models.model_parts import evaluating, head_parameters
from fairtune.settings.metrics import METRICS
from fairtune.settings.score_metrics import ScoredExamples
from fairtune.tasks.task import Labels

COLDEST, HOTTEST = 0.05, 20.0
PROBED, CLOSE = 4, 1e-4
Logits = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Calibration:
    """A temperature, and what it changes on the examples that it was found on.

    Args:
        ece_before, ece_after: expected calibration error.
        nll_before, nll_after: mean loss in nats.
        note: why there is no temperature, where there is none.
    """

    temperature: float
    n: int
    ece_before: float
    ece_after: float
    nll_before: float
    nll_after: float
    note: str = ""


def find_temperature(logits: Logits, labels: Labels) -> Calibration:
    """The temperature at which the labels are likeliest.

    Where every example is right the likeliest temperature is 0, which would only make the model sure of everything: then it is 1.
    """
    temperature, note = 1.0, ""
    if (logits.argmax(axis=1) == labels).all():
        note = (
            "every validation example is right, which says nothing of how sure the model may be; temperature 1 is kept"
        )
    else:
        found = minimize_scalar(
            lambda log: negative_log_likelihood(logits / np.exp(log), labels),
            bounds=(np.log(COLDEST), np.log(HOTTEST)),
            method="bounded",
            options={"xatol": 1e-6},
        )
        temperature = float(np.exp(found.x))
    after = logits / temperature
    return Calibration(
        temperature=temperature,
        n=len(labels),
        ece_before=calibration_error(logits, labels),
        ece_after=calibration_error(after, labels),
        nll_before=negative_log_likelihood(logits, labels),
        nll_after=negative_log_likelihood(after, labels),
        note=note,
    )


def negative_log_likelihood(logits: Logits, labels: Labels) -> float:
    return float(-log_softmax(logits.astype(np.float64), axis=1)[np.arange(len(labels)), labels].mean())


def calibration_error(logits: Logits, labels: Labels) -> float:
    """Expected calibration error: how far confidence is from accuracy, over 15 bins of equal width."""
    return METRICS["calibration_error"].of_scores(ScoredExamples(labels, logits))


def fold_temperature(network: Any, temperature: float) -> None:
    """Divide a classifier's logits by a temperature, once and for all, in the weights of its last layer.

    Raises:
        UnusableModelError: its last layer is not a linear one of its head, so that nothing was changed.
    """
    if temperature == 1.0:
        return
    last = _last_layer(network)
    probe = {"input_ids": torch.arange(PROBED, device=network.device).repeat(2, 1)}
    probe["attention_mask"] = torch.ones_like(probe["input_ids"])
    before = _logits(network, probe)
    _scale(last, 1 / temperature)
    if not torch.allclose(_logits(network, probe) * temperature, before, rtol=CLOSE, atol=CLOSE):
        _scale(last, temperature)
        raise UnusableModelError(_unfoldable(network))


def _last_layer(network: Any) -> nn.Linear:
    head = head_parameters(network)
    linear = [
        module
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear)
        and module.out_features == network.config.num_labels
        and f"{name}.weight" in head
    ]
    if not linear:
        raise UnusableModelError(_unfoldable(network))
    return linear[-1]


def _unfoldable(network: Any) -> str:
    return (
        f"calibrate: {type(network).__name__} does not end in a linear layer of its head, into which a temperature could be "
        "folded; fit without calibrate."
    )


def _scale(layer: nn.Linear, factor: float) -> None:
    with torch.no_grad():
        layer.weight.mul_(factor)
        if layer.bias is not None:
            layer.bias.mul_(factor)


def _logits(network: Any, probe: dict[str, Tensor]) -> Tensor:
    with evaluating(network), torch.no_grad():
        logits: Tensor = network(**probe).logits
        return logits.float()
