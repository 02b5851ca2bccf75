"""Execution: performing one run, workers that perform many, and the study as a whole."""
