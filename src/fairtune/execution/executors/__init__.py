"""Executors perform a study's jobs, on this machine or elsewhere."""
