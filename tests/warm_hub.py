"""What reading from the hub imports, with the settings that the hub's libraries then read; see tests/warm.py."""

from __future__ import annotations

import datasets
import huggingface_hub.hf_api

__all__ = ["datasets", "huggingface_hub"]
