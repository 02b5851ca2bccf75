"""Executors: whoever performs a study's jobs, on this machine or elsewhere."""
