"""The published tables are complete and consistent with each other."""

import pytest

from groupwise.datasets import published

EXPERIMENTS = ("mean", "min", "max", "permutation")


def test_there_are_two_tables_of_each_experiment():
    names = [*(f"synthetic-{label}" for label in EXPERIMENTS), "medical", "adult"]
    assert set(published()) == {(name, order) for name in names for order in ("shuffled", "sorted")}


def test_some_cells():
    first = published()["synthetic-permutation", "sorted"][0]
    assert first == ("circle", 49857, (24.05, 0.63), (-51.72, 0.17), 77.14)
    last = published()["adult", "shuffled"][-1]
    assert last == ("always_on", 49531, (18.25, 0.66), (-18.51, 0.94), 1506.92)


@pytest.mark.parametrize("experiment", sorted({name for name, _ in published()}))
def test_the_order_of_rows_changes_no_group_and_no_best_loss(experiment):
    shuffled, by_key = (published()[experiment, order] for order in ("shuffled", "sorted"))
    assert [(r.group, r.size, r.best_loss) for r in shuffled] == [
        (r.group, r.size, r.best_loss) for r in by_key
    ]
    assert shuffled[-1].group == "always_on"
