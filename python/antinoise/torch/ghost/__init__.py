"""Sums of clipped gradients without per-example gradients ("ghost clipping", "book-keeping")."""
