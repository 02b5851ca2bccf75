"""Figures are drawn once: what is drawn of the same data by the same code is kept in the cache, and found there the next time.

A report of a study that has not changed then imports neither matplotlib nor scikit-learn. Without the cache, or with one that is
damaged or cannot be written, everything is drawn again; that costs seconds and changes nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.cache import cached_json, key_of

LIBRARIES = ("matplotlib", "numpy", "pillow", "scikit-learn")
"""What decides how a figure looks, besides this package."""


def kept_figure(drawer: str, *given: Any) -> Any:
    """What a function draws, as text or plain data of texts; drawn only if it was not yet.

    Args:
        drawer: `module:function` within `fairtune.report.sections`, imported only to draw.
        given: what it draws.
    """

    def draw() -> Any:
        module, _, name = drawer.partition(":")
        return getattr(importlib.import_module(f"fairtune.report.sections.{module}"), name)(*given)

    return cached_json("figures", key_of([drawer, content_sum(given), _code()]), draw)


def content_sum(given: Any) -> str:
    """A hash of data classes, arrays and plain data, by their content and order.

    Raises:
        TypeError: something else, of which nobody knows what it holds.
    """
    text = json.dumps(given, default=_plain, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return [type(value).__qualname__, fields]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return [value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no content that could be compared")


@cache
def _code() -> str:
    """Which code draws: this package as it is installed or edited, and the libraries."""
    package = Path(__file__).parents[2]
    files = sorted(package.rglob("*.py"))
    stats = [(str(file.relative_to(package)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return key_of([stats, [_version(name) for name in LIBRARIES]])


def _version(library: str) -> str | None:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(library)
    return None
