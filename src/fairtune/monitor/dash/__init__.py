"""The live view in the browser: a small server that reads the ledger, and nothing else."""
