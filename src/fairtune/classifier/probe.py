"""A classifier in seconds: the model is left as it is, and a logistic regression reads the mean of its last states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairtune.classifier.calibration import Calibration, find_temperature
from fairtune.classifier.fit import (
    Fitted,
    encoded_split,
    environment_of,
    explained_failures,
    figures_of,
    input_length,
    require_fit,
)
from fairtune.classifier.probe_network import ProbeNetwork
from fairtune.classifier.process import Interrupt, borrowed_process, find_device
from fairtune.classifier.provenance import Provenance, data_of, settings_of, signature_of
from fairtune.classifier.settings import Settings
from fairtune.classifier.training_data import Data
from fairtune.core.errors import Stopped
from fairtune.core.stages import stoppable
from fairtune.learners.base import LabelledInputs, Scores
from fairtune.learners.encoder_features import compute_features, load_encoder
from fairtune.learners.linear_probe import LinearProbe
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer


def fit_probe(settings: Settings, data: Data, interrupt: Interrupt) -> Fitted:
    """Embed, choose a strength on validation, calibrate. What the caller's process held before is there again afterwards.

    Raises:
        FairtuneError: something about the parameters, the texts or the model does not fit.
        KeyboardInterrupt: Ctrl-C; nothing is learned then.
    """
    device = find_device(settings.device)
    with borrowed_process(device), explained_failures():
        try:
            with stoppable(interrupt.check_stop):
                return _fit(settings, data, device, interrupt)
        except Stopped:
            raise KeyboardInterrupt from None


def _fit(settings: Settings, data: Data, device: str, interrupt: Interrupt) -> Fitted:
    source = find_model(settings.model).fetched()
    tokenizer = load_tokenizer(source.fetch())
    length = input_length(settings, source, tokenizer, data.splits["train"])
    settings = replace(settings, train=settings.train.model_copy(update={"max_length": length}))
    require_fit(settings, data)
    encoder = load_encoder(source, tokenizer)
    encoded = {name: encoded_split(split, name, tokenizer, length) for name, split in data.splits.items()}
    features = {
        name: LabelledInputs(compute_features(encoder, split, device, interrupt.check_stop), split.labels)
        for name, split in encoded.items()
    }
    held_out = features["validation"]
    classes = len(data.classes.values)
    probe = LinearProbe.fit(features["train"], held_out, classes, settings.metric, interrupt.check_stop)
    scores: Scores = probe.scores(held_out.inputs)
    calibration: Calibration | None = None
    if settings.calibrate:
        calibration = find_temperature(scores, held_out.labels)
        probe = _colder(probe, calibration.temperature)
        scores = probe.scores(held_out.inputs)
    facts = data_of(data.classes, dict(data.splits), data.how)
    everything = settings_of(settings, source, facts)
    provenance = Provenance(
        labels=data.classes.values,
        width=data.width,
        names=None if data.names is None else list(data.names),
        max_length=length,
        settings=everything,
        data=facts,
        history=_history(probe, settings.metric),
        step=0,
        steps=0,
        epoch=0,
        partial=False,
        validation=figures_of(encoded["validation"], scores),
        calibration=calibration,
        environment=environment_of(device),
        notes=[*data.notes, *probe.notes],
        signature=signature_of(everything, partial=False),
        label=data.label,
    )
    return Fitted(ProbeNetwork(encoder, probe).eval(), tokenizer, device, provenance)


def _colder(probe: LinearProbe, temperature: float) -> LinearProbe:
    """The probe with its outputs divided by a temperature."""
    arrays = {name: array / temperature for name, array in probe.arrays.items()}
    return LinearProbe(probe.classes, probe.choice, arrays, notes=probe.notes)


def _history(probe: LinearProbe, metric: str) -> list[dict[str, Any]]:
    """One row per strength that was tried."""
    chosen = probe.choice.setting["C"]
    return [
        {
            "C": float(trial.setting["C"]), "validation_loss": trial.loss, metric: trial.score,
            "best": trial.setting["C"] == chosen,
        }
        for trial in probe.choice.tried
    ]  # fmt: skip
