"""What reading data imports, but for the libraries of the hub; see tests/warm.py."""

from __future__ import annotations

import importlib
import sys

for name in (
    "fairtune.tasks", "pandas", "pyarrow.dataset", "pyarrow.parquet", "torch", "fsspec", "httpx", "aiohttp", "dill",
    "multiprocess", "tqdm.auto", "tokenizers", "scipy.io",
):  # fmt: skip
    try:
        importlib.import_module(name)
    except ImportError:  # a library of a library, which another version may not need
        continue

early = {"huggingface_hub", "datasets", "transformers"} & set(sys.modules)
assert not early, f"{early} read HF_HOME and HF_ENDPOINT when they are imported, so tests could not set them"
