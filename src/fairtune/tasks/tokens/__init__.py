"""From texts to tokens, batches and token blocks."""
