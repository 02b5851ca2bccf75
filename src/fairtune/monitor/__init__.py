"""Watching a study while it runs."""
