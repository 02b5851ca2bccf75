"""Training one run: a loop that can be stepped from outside, its optimizer, clock, evaluation and checkpoints."""
