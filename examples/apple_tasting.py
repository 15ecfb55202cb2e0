"""Apple tasting: whether a loan is repaid is seen only if the loan is given.

Run it: python examples/apple_tasting.py
"""

import numpy as np

import groupwise as gw

BITS = ["owns_home", "has_job", "in_debt"]
ROUNDS = 10_000

labeller = gw.Groupwise(
    groups=[gw.by("region")],
    learner=gw.learners.ContextualFTPL(
        gw.oracles.Stumps(), contexts=gw.oracles.Stumps().separator(3), setting="separator"
    ),
    loss=gw.losses.ZeroOne(),
    features=BITS,
)
lender = gw.AppleTasting(labeller, horizon=ROUNDS)  # or gw.PayForFeedback: pay 1 for a label
rng = np.random.default_rng(2)
given = repaid = explored = 0
for _ in range(ROUNDS):
    bits = dict(zip(BITS, rng.integers(0, 2, len(BITS)).tolist(), strict=True))
    row = {**bits, "region": str(rng.choice(["north", "south"]))}
    ticket = lender.predict(row)
    if ticket.prediction == 0:
        continue  # rejected: nobody will ever know
    repays = row["has_job"] if row["region"] == "north" else 1 - row["in_debt"]
    given, repaid, explored = given + 1, repaid + repays, explored + ticket.wants_label
    lender.learn(ticket, repays)  # learned from where ticket.wants_label, else logged only

print(f"{given:,} loans given, {repaid:,} repaid; {explored:,} were given to learn.")
print(lender.regret())
