"""What a plan that exists spends: at other deltas, for persons with several rows, and for several models.

    python examples/account.py [PLAN.toml]

Without a file, a plan is made first.
"""

import sys

import antinoise as an

# Reading a plan recomputes its claim: an altered file is refused.
if len(sys.argv) > 1:
    plan = an.Plan.load(sys.argv[1])
else:
    plan = an.plan(examples=5_000, batch_size=100, epochs=4, epsilon=1, delta=1e-6)
print(plan.statement.split("\n\n")[0])
if plan.accountant != "gdp":
    sys.exit("The following lines are for plans without sampling: antinoise account --plan has all others.")
for delta in (1e-4, 1e-8, 1e-10):
    print(f"at delta {delta:.0e}: epsilon {an.account(plan.noise_multiplier, delta)['epsilon']:.2f}")
for rows in (2, 5, 20):
    # The contributions of a person with several rows are at most that much longer.
    epsilon = an.account(plan.noise_multiplier / rows, plan.delta)["epsilon"]
    print(f"a person with {rows} rows: epsilon {epsilon:.2f}")
epsilon = an.account(plan.noise_multiplier / 3**0.5, plan.delta)["epsilon"]
print(f"three models of the same data: epsilon {epsilon:.2f}")
