"""Parameters, sums and noise in several processes."""
