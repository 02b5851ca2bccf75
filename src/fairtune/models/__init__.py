"""Models: where they come from, loading them, what is in them. Only `sources` is free of torch."""
