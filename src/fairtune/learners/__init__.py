"""Simple baselines: learners that are fitted at once, without fine-tuning."""
