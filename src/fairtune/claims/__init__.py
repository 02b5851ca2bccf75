"""Published claims as data, one file per source, and what answers each: the ledger, counting, and published bands."""
