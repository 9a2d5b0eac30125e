#!/usr/bin/env python3
"""Strategy matrices as jax-privacy makes them, in the files of crates/plan/tests/data.

    pip install jax-privacy && python3 scripts/plan/jax_privacy_matrices.py

Writes jax_privacy.npz, which holds for 24 steps: `dense`, optimal for three epochs; `banded`, eight bands
with columns of norm 1, optimised; `blt`, three buffers; `toeplitz`, the optimal coefficients of one
participation; and, for each NAME, the figures of jax-privacy: NAME_sensitivity for three participations eight
apart, and NAME_error, the root of the mean squared error of prefix sums.
"""

from pathlib import Path

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax_privacy.matrix_factorization import banded, buffered_toeplitz, dense, sensitivity, toeplitz  # noqa: E402

STEPS, EPOCHS, APART = 24, 3, 8
OUT = Path(__file__).resolve().parents[2] / "crates" / "plan" / "tests" / "data" / "jax_privacy.npz"


def main():
    blt = buffered_toeplitz.optimize(n=STEPS, min_sep=APART, max_participations=EPOCHS, max_buffers=3)
    found = {
        "dense": dense.optimize(STEPS, epochs=EPOCHS, equal_norm=False),
        "banded": banded.optimize(STEPS, bands=APART).materialize(),
        "blt": blt.materialize(STEPS),
        "toeplitz": toeplitz.materialize_lower_triangular(toeplitz.optimal_max_error_strategy_coefs(STEPS)),
    }
    arrays = {}
    for name, c in found.items():
        c = np.asarray(c, dtype=np.float64)
        arrays[name] = c
        arrays[f"{name}_sensitivity"] = sensitivity.fixed_epoch_sensitivity(c, epochs=EPOCHS)
        arrays[f"{name}_error"] = np.sqrt(np.mean(dense.per_query_error(strategy_matrix=c)))
    np.savez_compressed(OUT, **arrays)


if __name__ == "__main__":
    main()
