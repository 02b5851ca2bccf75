"""The one place that calls transformers' loaders: local files, safetensors, no remote code, and one sentence per failure.

Nothing else in fairtune calls `from_pretrained` or `from_config` of transformers, which a test checks.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from fairtune.core.errors import FairtuneError, ModelError, RunFailure, Stopped
from fairtune.core.files import read_json
from fairtune.models.folder_safety import CONFIG, TOKENIZER, check_folder, check_model_folder

SAFELY: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
LONGEST_REASON = 300
SPEAKING = (OSError, ValueError, ImportError, RuntimeError, SafetensorError, FairtuneError)
"""Errors whose text says what is wrong without the name of their type."""


class Unloadable(ModelError):  # noqa: N818 - users meet it as a ModelError
    """A library refused a model's files, or choked on them."""


def read_config(folder: Path, what: str | None = None, **values: Any) -> Any:
    """The config of a model in a folder, with these values in place of the file's."""
    named = what or f"model {folder}"
    check_folder(named, folder)
    with explain_failure(f"{named}: its {CONFIG} cannot be used"):
        return AutoConfig.from_pretrained(str(folder), **SAFELY, **values)


def make_config(model_type: str, values: Mapping[str, Any], what: str) -> Any:
    """A config that is in no file."""
    with explain_failure(f"{what}: its settings cannot be used"):
        return AutoConfig.for_model(model_type, **values)


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder."""
    named = f"model {folder}"
    check_folder(named, folder)
    # A config may name files anywhere; None lets transformers look for each in the folder alone.
    files = {name: None for name in read_json(folder / TOKENIZER) or {} if name.endswith("_file")}
    try:
        with explain_failure(f"{named}: its tokenizer cannot be loaded (tokenizer.json, {TOKENIZER})"):
            return AutoTokenizer.from_pretrained(str(folder), **SAFELY, **files)
    except Unloadable:
        if (folder / CONFIG).is_file():
            read_config(folder, named)  # which may be the reason, and then says so
        raise


def load_network(
    model_class: Any, folder: Path, what: str, purpose: str, config: Any = None, **more: Any
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """A network with the weights in a folder, in fp32, and what transformers reports about its tensors."""
    transformers_logging.set_verbosity_error()  # also for what comes after: the init card says what a load report would
    transformers_logging.disable_progress_bar()
    files = check_model_folder(what, folder)
    config = read_config(folder, what) if config is None else config
    with explain_failure(f"{what}: transformers cannot load it as {purpose} ({CONFIG}, {files[0].name})"):
        network, info = model_class.from_pretrained(
            str(folder),
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            output_loading_info=True,
            **SAFELY,
            **more,
        )
    own_memory(network)
    return network, info


def own_memory(network: torch.nn.Module) -> None:
    """Move weights out of the file that they are mapped from: where a file happens to put them must not decide how products round.

    Shared weights stay shared. What torch allocates begins at a multiple of 64 bytes, for which kernels are quickest, too.
    """
    with torch.no_grad():
        for tensor in (*network.parameters(), *network.buffers()):
            if tensor.device.type == "cpu":
                tensor.data = tensor.data.clone()


def draw_network(model_class: Any, config: Any, what: str, **more: Any) -> PreTrainedModel:
    """A network drawn from torch's generator by transformers' own rules."""
    with explain_failure(f"{what}: transformers cannot build it"):
        return _from_config(model_class, config, **more)


def draw_empty(model_class: Any, config: Any, failed: str) -> PreTrainedModel:
    """A network that has shapes and no memory, and draws nothing."""
    with explain_failure(failed), torch.device("meta"):
        return _from_config(model_class, copy.deepcopy(config))  # building changes it


def _from_config(model_class: Any, config: Any, **more: Any) -> PreTrainedModel:
    """Of an Auto class, or of a class of transformers' own."""
    network: PreTrainedModel = (
        model_class.from_config(config, trust_remote_code=False, **more)
        if hasattr(model_class, "_model_mapping")
        else model_class._from_config(config, **more)
    )
    return network


def reason_of(error: BaseException) -> str:
    """What a library says, as part of a sentence; with the error's type where the words alone say little."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(error))
    text = " ".join(text.split()).rstrip(".:")
    if not isinstance(error, SPEAKING):
        text = f"{type(error).__name__}: {text}".rstrip(": ")
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """transformers without its progress bars and reports; afterwards as verbose as before."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


@contextmanager
def explain_failure(failed: str) -> Iterator[None]:
    """Whatever a library raises over a file that it cannot use, as one sentence; and none of its warnings."""
    try:
        with quiet_transformers(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (FairtuneError, RunFailure, Stopped, MemoryError, torch.OutOfMemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of Rust
            raise
        raise Unloadable(f"{failed}: {reason_of(error)}.") from None
