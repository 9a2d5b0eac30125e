"""Batches: which examples a step takes, and that it takes them once."""
