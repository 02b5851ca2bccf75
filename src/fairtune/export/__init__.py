"""Deltas: a run's model kept as what training changed, and a recipe from which the rest is rebuilt bit for bit."""
