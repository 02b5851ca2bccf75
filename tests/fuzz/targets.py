"""Every target: the modules that have some are imported here."""

from __future__ import annotations

from tests.fuzz import cache_files, data_files, event_lines, run_folders, study_files
from tests.fuzz.registering import TARGETS

__all__ = ["TARGETS", "cache_files", "data_files", "event_lines", "run_folders", "study_files"]
