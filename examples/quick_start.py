"""The round loop on a made-up stream: predict, learn, and see the regret on every group."""

import random
from typing import Any

import groupwise as gw


def patients(count: int, seed: int = 0):
    """Costs, in thousands: smokers' depend on their weight, others' on their age."""
    draw = random.Random(seed)
    for _ in range(count):
        row: dict[str, Any] = {
            "sex": draw.choice(["female", "male"]),
            "age": draw.randint(18, 64),
            "bmi": round(draw.gauss(30, 6), 1),
            "smoker": draw.choice(["yes", "no", "no"]),
        }
        costs = 0.9 * row["bmi"] if row["smoker"] == "yes" else 0.25 * row["age"]
        yield row, min(60.0, max(0.0, costs + draw.gauss(0, 2)))


model = gw.Groupwise(
    groups=[gw.by("sex"), gw.cut("age", [35, 50]), gw.by("smoker")],
    loss=gw.losses.Square(low=0, high=60),
)
for row, costs in patients(2_000):
    ticket = model.predict(row)
    model.learn(ticket, costs)

print(model.regret())
smokers = model.regret()["smoker=yes"]
print(
    f"On smokers: regret {smokers['regret']:.0f}, one model for everybody "
    f"{smokers['baseline_regret']:.0f}, at most {smokers['certificate']:.0f}."
)
