"""Runs on a Ray cluster: one task per run, which starts the process that performs it; jobs and answers are files."""
