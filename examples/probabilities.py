"""Yes or no: probabilities with a guarantee for every group, and how well calibrated they are.

Run it: python examples/probabilities.py
"""

import math
import random
from typing import Any

import groupwise as gw

draw = random.Random(0)
model = gw.Groupwise(
    groups=[gw.by("ward"), gw.cut("age", [40, 65]), gw.by("ward") & gw.where("age", ">", 65)],
    loss=gw.losses.Log(classes=["home", "readmitted"]),
)
for _ in range(2_000):
    row: dict[str, Any] = {"ward": draw.choice(["heart", "hip"]), "age": draw.randint(20, 95)}
    row["days"] = 1 + int(draw.expovariate(0.2))
    score = -2.5 + 0.03 * row["age"] + (0.1 * row["days"] if row["ward"] == "heart" else 0.0)
    ticket = model.predict(row)
    happened = draw.random() < 1 / (1 + math.exp(-score))
    model.learn(ticket, "readmitted" if happened else "home")

print("A patient of 80 after ten days:")
for ward in ("heart", "hip"):
    chances = model.predict_one({"ward": ward, "age": 80, "days": 10})
    print(f"  {ward:6} " + ", ".join(f"{name} {p:.0%}" for name, p in chances.items()))
print()
print(model.regret())
print()
print(model.calibration())
