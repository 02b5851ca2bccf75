"""The ledger: run folders on disk, append-only events, the environment, and an index that can be rebuilt."""
