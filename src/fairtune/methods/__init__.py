"""Training methods: one folder each. `registry` knows them; only `base` and the methods' own files import torch."""
