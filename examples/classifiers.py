"""Probabilities next to river: one model for everybody, and one with a guarantee for every group.

Run it: python examples/classifiers.py (it needs river and scikit-learn)
"""

import math
import random
from collections import defaultdict
from typing import Any

from river import compose, linear_model, preprocessing
from sklearn.naive_bayes import BernoulliNB

import groupwise as gw
from groupwise.compat.river import GroupwiseClassifier


def scaled() -> compose.Pipeline:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


single = compose.Select("hour", "amount") | scaled()
own = GroupwiseClassifier(groups=["country"])
crowd = GroupwiseClassifier(  # river and scikit-learn as learners of every group, beside our own
    groups=["country"],
    learner=[
        gw.learners.Logistic(),
        gw.learners.Foreign(scaled()),
        gw.learners.Foreign(BernoulliNB()),
    ],
    features=["hour", "amount"],
    indicators=False,
)
models: dict[str, Any] = {
    "river, one for everybody": single,
    "groupwise": own,
    "groupwise, three learners": crowd,
}

draw = random.Random(0)
lost: dict[str, dict[str, float]] = {name: defaultdict(float) for name in models}
seen: dict[str, int] = defaultdict(int)
for _ in range(2_000):
    country = draw.choices(["here", "there"], [9, 1])[0]
    row: dict[str, Any] = {
        "country": country,
        "hour": draw.random(),
        "amount": draw.expovariate(1.0),
    }
    # Here large amounts are suspicious; there they are usual, and late hours are.
    score = row["amount"] - 3 if country == "here" else 4 * row["hour"] - 3
    fraud = draw.random() < 1 / (1 + math.exp(-score))
    seen[country] += 1
    for name, model in models.items():
        likely = model.predict_proba_one(row)[fraud]
        lost[name][country] -= math.log(max(likely, 1e-15))
        model.learn_one(row, fraud)

print("Mean log loss, by country:")
for name, losses in lost.items():
    print(f"  {name:26s}", *(f"{c} {losses[c] / seen[c]:.3f}  " for c in sorted(seen)))
print(own.regret())
