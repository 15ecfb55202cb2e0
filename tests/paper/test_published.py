"""Experiments by name, and settings by what somebody chose."""

import pytest

from groupwise.datasets import published
from groupwise.errors import ConfigurationError
from groupwise.paper.published import EXPERIMENTS, Settings, chosen, chosen_settings, dataset_of


def test_every_published_table_has_its_experiment():
    assert {name for name, _ in published()} == set(EXPERIMENTS)


def test_families_are_the_published_groups_each_once():
    for name, experiment in EXPERIMENTS.items():
        if experiment.families:
            drawn = [group for _, groups in experiment.families for group in groups]
            assert sorted(drawn) == sorted(row.group for row in published()[name, "sorted"])


def test_chosen_experiments():
    names = lambda *given: [experiment.name for experiment in chosen(given)]  # noqa: E731
    assert names() == names("all") == names("medical", "all") == list(EXPERIMENTS)
    assert names("medical", "synthetic-min", "medical") == ["synthetic-min", "medical"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("medcal", "Did you mean medical"),
        ("synthetic_mean", "Did you mean synthetic-mean"),
        ("weather", "synthetic-permutation, medical, adult and all"),
    ],
)
def test_an_unknown_experiment_is_answered_with_the_names(given, said):
    with pytest.raises(ConfigurationError, match=said):
        chosen(["medical", given])


def test_made_data_are_made_once():
    assert dataset_of("synthetic-min") is dataset_of("synthetic-min")
    assert dataset_of("synthetic-min").name == "synthetic-min"


def choose(**given):
    left_open = {
        "intersections": 1,
        "preset": "paper",
        "learner": None,
        "aggregator": None,
        "forward": False,
        "play": None,
        "clip": False,
        "always_on": True,
    }
    return chosen_settings(**{**left_open, **given})


def test_what_is_left_open_is_the_papers():
    assert choose() == Settings()
    assert choose().is_paper
    assert choose(play="sample").is_paper
    for change in ({"forward": True}, {"play": "mean"}, {"clip": True}, {"always_on": False}):
        assert not choose(**change).is_paper
    assert choose(forward=True) == choose(learner="forward")
    assert choose(clip=True, always_on=False).changes == {"clip": True, "always_on": False}


def test_specialists_bring_their_play_and_clip():
    assert choose(aggregator="specialists") == Settings(
        aggregator="specialists", play=None, clip=True
    )
    with pytest.raises(ConfigurationError, match="its own play"):
        choose(aggregator="specialists", play="mean")


@pytest.mark.parametrize("given", [{"learner": "trees"}, {"aggregator": "votes"}])
def test_unknown_parts(given):
    with pytest.raises(ConfigurationError, match="There is no"):
        choose(**given)
