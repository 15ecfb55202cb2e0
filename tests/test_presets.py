"""Configurations by name."""

import numpy as np

import groupwise as gw
from groupwise.datasets import synthetic
from groupwise.paper.published import Settings


def test_the_papers_preset_is_the_papers_experiment():
    """A model by the preset plays what ``groupwise reproduce`` replays, row for row."""
    data = synthetic("mean").take(np.arange(300))
    names = [f"in{g}" for g in range(data.membership.shape[1])]
    fields = [f"x{i}" for i in range(data.features.shape[1])]
    model = gw.Groupwise(
        [gw.weight(name) for name in names],
        features=fields,
        indicators=False,
        always_on=False,
        **gw.presets.paper(),
    )
    expected = gw.replay(data.features, data.label, data.membership, **Settings().parts())
    cells = np.column_stack([data.features, data.membership]).tolist()
    for t, row in enumerate(cells):
        ticket = model.predict(dict(zip(fields + names, map(float, row), strict=True)))
        assert ticket.prediction == expected.prediction[t]
        model.learn(ticket, float(data.label[t]))


def test_a_preset_is_made_afresh():
    gw.presets.paper()["clip"] = True
    assert not gw.presets.paper()["clip"]
