"""Slurm: one array of jobs per submission, each task one seed's block of arms; its script, its commands, its states in words."""
