"""Runs on other machines: jobs as files, the process on a node, the executor that follows it. See `cluster.py` to add a kind."""
