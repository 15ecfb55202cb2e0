"""Online shortest paths: a route for every rush hour, every rain, and both.

Run it: python examples/routing.py
"""

import numpy as np

import groupwise as gw

EDGES = [("home", "bridge"), ("home", "tunnel"), ("home", "ferry")]
EDGES += [(way, "office") for way in ("bridge", "tunnel", "ferry")]


def minutes(rush_hour: bool, rain: bool, rng: np.random.Generator) -> np.ndarray:
    """What each edge costs today: the bridge jams at rush hour, the ferry stops in the rain."""
    way = np.array([10.0 + 20.0 * rush_hour, 18.0, 12.0 + 25.0 * rain])
    return np.concatenate([way, [5.0, 5.0, 5.0]]) + rng.uniform(0.0, 3.0, 6)


rng = np.random.default_rng(0)
oracle = gw.oracles.ShortestPath(EDGES, source="home", target="office")
router = gw.Groupwise(
    groups=[gw.by("rush_hour"), gw.by("rain")],
    learner=gw.learners.FTPL(oracle, cost_norm=120.0),
    loss=gw.losses.Linear(low=0.0, high=50.0),
)
for _ in range(3_000):
    today = {"rush_hour": bool(rng.random() < 0.4), "rain": bool(rng.random() < 0.3)}
    ticket = router.predict(today)  # ticket.prediction: a 0/1 vector over the edges
    router.learn(ticket, minutes(**today, rng=rng))  # the label is the vector of costs

print(router.regret())
route = oracle.path(router.predict_one({"rush_hour": True, "rain": False}))
print(
    "At rush hour, dry:",
    " → ".join(str(place) for place in [route[0][0], *(head for _, head in route)]),
)
