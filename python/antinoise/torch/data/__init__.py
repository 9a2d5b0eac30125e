"""Batches: the examples of each step, and checks that a step uses each batch once."""
