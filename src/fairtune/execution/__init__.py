"""Execution: one run from its job to its result, the study as a whole, and the executors that perform its jobs."""
