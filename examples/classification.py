"""Classification with an ERM oracle: decision stumps for every group, found by one oracle.

Run it: python examples/classification.py
"""

import itertools

import numpy as np

import groupwise as gw

BITS = ["owns_home", "has_job", "in_debt", "is_student"]
CONTEXTS = list(itertools.product([0, 1], repeat=len(BITS)))

labeller = gw.Groupwise(
    groups=[gw.by("region"), gw.where("age", ">", 60)],
    learner=gw.learners.ContextualFTPL(
        gw.oracles.Stumps(), contexts=CONTEXTS, setting="transductive"
    ),
    loss=gw.losses.ZeroOne(),  # several labels: gw.losses.Hamming(labels=3)
    features=BITS,
)
rng = np.random.default_rng(1)
for _ in range(4_000):
    bits = dict(zip(BITS, rng.integers(0, 2, len(BITS)).tolist(), strict=True))
    row = {**bits, "region": str(rng.choice(["north", "south"])), "age": int(rng.integers(18, 90))}
    ticket = labeller.predict(row)
    # Who votes yes? The old by their home, the north by its jobs, the south by its debts.
    reason = {"north": "has_job", "south": "in_debt"}[row["region"]]
    vote = row["owns_home"] if row["age"] > 60 else row[reason]
    labeller.learn(ticket, vote ^ int(rng.random() < 0.05))

print(labeller.regret())
print("Of a single learner for everybody, the regret on each group:")
for line in labeller.regret():
    print(f"  {line['group']:14s} {line['baseline_regret']:8.1f}")
