"""What the ledger supports: statistics, comparisons, verdicts. Reads the ledger only; never imports training."""
