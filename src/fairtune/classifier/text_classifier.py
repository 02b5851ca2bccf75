"""`TextClassifier`: a good classifier of texts by one training method or several, as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score

from fairtune.classifier.errors import NotFittedYetError
from fairtune.classifier.evaluation import Mistakes, as_frame, find_mistakes
from fairtune.classifier.fit import train_classifier
from fairtune.classifier.inputs import (
    Given,
    read_texts,
    require_like,
    require_some,
)
from fairtune.classifier.labels import read_labels
from fairtune.classifier.model_folder import (
    load_classifier_folder,
    packed,
    save_classifier,
    unpacked,
)
from fairtune.classifier.predictor import Predictor
from fairtune.classifier.probe import fit_probe
from fairtune.classifier.process import Interrupt, find_device
from fairtune.classifier.progress import make_fit_watcher, prediction_progress
from fairtune.classifier.provenance import Provenance
from fairtune.classifier.settings import check_settings, plain_parameters
from fairtune.classifier.training_data import read_data
from fairtune.core.printable import printable
from fairtune.tasks.task import Labels

FILES = "_files"


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of texts, or of pairs of texts, fine-tuned from a transformers model, or put on top of one.

    Args:
        model: `minilm` (embedded), a folder with a transformers model, or a hub id with an optional @revision.
        methods: changes to how it is trained, in the words of a study: names, or names with settings, such as
            `[{"focal": {"gamma": 2}}, "fgm"]`. `fairtune methods` lists them.
        lr: learning rate at the peak of the schedule; "auto" is 1e-4 for small models such as minilm, 2e-5 from 512 units on.
        epochs: passes over the training examples, at most.
        batch_size: examples in one step.
        max_length: longest text in tokens; "auto" covers 95 % of the training texts.
        validation: share of the examples that is held out to choose the best epoch, or `(texts, labels)` to choose it on;
            0 trains on everything and takes the last weights.
        patience: stop after this many evaluations without a better score; None never.
        metric: what "better" means: accuracy, macro_f1, mcc; f1, precision, recall or specificity of the second of two classes;
            macro_precision or macro_recall of more than two; or, whatever line is drawn between
            classes, roc_auc, average_precision, log_loss, brier, calibration_error.
        calibrate: find a temperature on the validation examples, so that probabilities mean what they say.
        train: further settings, in the words of a study's `train` section, such as `{"warmup": 0.06, "precision": "bf16"}`.
        seed: decides everything that is random.
        device: auto, cpu, mps, cuda or cuda:1.
        progress: show how far training is.
        head: None fine-tunes the whole model; "linear-probe" leaves it as it is and puts a logistic regression on the mean of its
            last states, in seconds.

    Attributes:
        classes_: the labels, sorted.
        history_: one row per evaluation: losses and figures of merit.
        validation_: figures of merit on the validation examples, with 95 % intervals; None without.
        best_epoch_: the epoch whose weights it has, from 1; 0 where none was trained.
        partial_: whether Ctrl-C ended training early.
        temperature_: what the logits were divided by; 1 unless calibrated.
        max_length_: tokens after which texts are cut.
        signature_: one line that says what was fitted.
        n_features_in_: texts of an example: 1, or 2 for pairs.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = "minilm",
        methods: Sequence[str | Mapping[str, Any]] = (),
        lr: float | str = "auto",
        epochs: float = 5,
        batch_size: int = 16,
        max_length: int | str = "auto",
        validation: Any = 0.1,
        patience: int | None = 3,
        metric: str = "macro_f1",
        calibrate: bool = False,
        train: Mapping[str, Any] | None = None,
        seed: int = 0,
        device: str = "auto",
        progress: bool = True,
        head: str | None = None,
    ) -> None:
        self.model = model
        self.methods = methods
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.max_length = max_length
        self.validation = validation
        self.patience = patience
        self.metric = metric
        self.calibrate = calibrate
        self.train = train
        self.seed = seed
        self.device = device
        self.progress = progress
        self.head = head

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Train on texts and their labels.

        Args:
            X: a list, a pandas Series, a numpy array; pairs as tuples, or as two columns.
            y: texts, whole numbers or truth values, as many.

        Raises:
            FairtuneError: also a ValueError where parameters, texts or labels are wrong; what was fitted before stays.
            KeyboardInterrupt: Ctrl-C; the best weights so far are kept, and `partial_` is True.
        """
        parameters = self.get_params(deep=False)
        settings = check_settings(parameters)
        data = read_data(X, y, self.validation, settings)
        for note in data.notes:
            warnings.warn(printable(note), UserWarning, stacklevel=2)
        with Interrupt(quiet=not self.progress) as interrupt:
            if settings.head is None:
                fitted = train_classifier(settings, data, make_fit_watcher(self.progress), interrupt)
            else:
                fitted = fit_probe(settings, data, interrupt)
        predictor = Predictor(fitted.network, fitted.tokenizer, fitted.provenance.max_length, fitted.device)
        self._take(predictor, fitted.provenance, plain_parameters(parameters, fitted.provenance.settings))
        if fitted.provenance.partial:
            raise KeyboardInterrupt("training was interrupted; the classifier keeps its best weights so far")
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """The likeliest label of each text."""
        numbers = self._logits(self._given(X)).argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """The probability of each label, one row per text, columns as in `classes_`."""
        return self._probabilities(self._given(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The accuracy. A label that was not there at fit is refused, since no prediction could be right."""
        given = self._given(X)
        labels = self._labels(given, y)
        return float(accuracy_score(labels, self._logits(given).argmax(axis=1), sample_weight=sample_weight))

    def errors(self, X: Any, y: Any) -> Mistakes:  # noqa: N803
        """What it gets wrong: a table of the mistakes, with `.confusion`, `.per_class` and `.overall`."""
        given = self._given(X)
        labels = self._labels(given, y)
        return find_mistakes(given, labels, self._probabilities(given), self.classes_)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the classifier as a folder that fairtune and plain transformers load, with a model card. Returns the folder."""
        predictor, provenance = self._fitted()
        place = Path(folder).expanduser()
        save_classifier(place, predictor.network, predictor.tokenizer, provenance, self._made_by)
        return place

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str = "auto") -> Self:
        """A classifier as `save` wrote it.

        Raises:
            FairtuneError: there is none, or a file of it is missing, cut off or changed.
        """
        network, tokenizer, provenance, parameters = load_classifier_folder(Path(folder))
        found = cls(**{**parameters, "device": device})
        found._take(Predictor(network, tokenizer, provenance.max_length, find_device(device)), provenance, parameters)
        return found

    # -- scikit-learn's contract ---------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "predictor_")

    def __getstate__(self) -> dict[str, Any]:
        """A copy, or another process, gets the same files as `save` writes: some networks cannot be pickled."""
        state = dict(super().__getstate__())
        predictor = state.pop("predictor_", None)
        if predictor is not None:
            state[FILES] = packed(predictor.network, predictor.tokenizer, self._provenance, self._made_by)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop(FILES, None)
        super().__setstate__(state)
        if files is not None:
            network, tokenizer, provenance, parameters = unpacked(files)
            self._take(
                Predictor(network, tokenizer, provenance.max_length, find_device("auto")), provenance, parameters
            )

    # -- what is fitted ------------------------------------------------------------------------------------------------

    def _take(self, predictor: Predictor, provenance: Provenance, made_by: dict[str, Any]) -> None:
        """Become what was fitted, all at once.

        Args:
            made_by: the parameters that led to it, whatever they are set to by now.
        """
        fitted = {
            "predictor_": predictor,
            "classes_": provenance.classes.array,
            "n_features_in_": provenance.width,
            "max_length_": provenance.max_length,
            "history_": pd.DataFrame(provenance.history),
            "validation_": None if provenance.validation is None else as_frame(provenance.validation),
            "best_epoch_": provenance.epoch,
            "partial_": provenance.partial,
            "temperature_": provenance.temperature,
            "signature_": provenance.signature,
            "_provenance": provenance,
            "_made_by": made_by,
        }
        self.__dict__.pop("feature_names_in_", None)
        if provenance.names is not None:
            fitted["feature_names_in_"] = np.array(provenance.names, dtype=object)
        self.__dict__.update(fitted)

    def _fitted(self) -> tuple[Predictor, Provenance]:
        if not hasattr(self, "predictor_"):
            raise NotFittedYetError(
                "This TextClassifier instance is not fitted yet: call `fit`, or `TextClassifier.load(folder)`."
            )
        return self.predictor_, self._provenance

    def _given(self, X: Any) -> Given:  # noqa: N803
        _, provenance = self._fitted()
        given = read_texts(X)
        require_like(given, provenance.width, provenance.names)
        return given

    def _labels(self, given: Given, y: Any) -> Labels:
        labels = read_labels(y, len(given))
        require_some(given)
        return self._fitted()[1].classes.numbers(labels)

    def _logits(self, given: Given) -> npt.NDArray[np.float32]:
        with prediction_progress(len(given), self.progress) as progress:
            return self._fitted()[0].logits(given.texts, progress)

    def _probabilities(self, given: Given) -> npt.NDArray[np.float64]:
        return np.asarray(softmax(self._logits(given).astype(np.float64), axis=1))
