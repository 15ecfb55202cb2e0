"""The regret table, of all groups or of the largest."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import groupwise as gw
from groupwise.regret import hindsight


@pytest.fixture(scope="module")
def model():
    found = gw.Groupwise([gw.by("g")])
    for t in range(60):
        found.learn_one({"g": "abbcccdddd"[t % 10], "x": t % 7 / 7}, t % 5 / 5)
    return found


def test_the_largest_groups_come_first(model):
    whole = model.regret()
    for largest in (0, 1, 3, 9):
        table = model.regret(largest=largest)
        expected = sorted(whole.rows, key=lambda row: -row["rounds"])[:largest]
        assert table.rows == expected
        assert (table.settled, table.comparator) == (whole.settled, whole.comparator)


def test_names_of_groups_features_and_fields(model):
    assert model.group_names == ["g=a", "always_on", "g=b", "g=c", "g=d"]
    assert set(model.feature_names) == {"(intercept)", "g=a", "g=b", "g=c", "g=d", "x"}
    assert model.field_kinds == {"g": "text", "x": "number"}
    model.group_names.clear()
    model.feature_names.clear()
    assert len(model.group_names) == 5
    assert len(model.feature_names) == 6


def test_linear_algebra_has_one_thread(model, monkeypatch):
    """Of many small problems its own threads only get in the way, and more so on a busy machine."""
    found: set[int] = set()
    plain = hindsight._directions

    def directions(*arguments):
        found.update(x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas")
        return plain(*arguments)

    monkeypatch.setattr(hindsight, "_directions", directions)
    with threadpool_limits(2, user_api="blas"):
        model.regret()
    assert found == {1}


def test_a_group_that_is_not_there():
    model = gw.Groupwise([gw.by("sex")])
    with pytest.raises(KeyError, match=r"no group 'sex=f' in this table\. It has none"):
        model.regret()["sex=f"]
    model.learn_one({"sex": "f"}, 0.4)
    with pytest.raises(KeyError, match=r"no group 'sex' in this table\. Its groups are .*sex=f"):
        model.regret()["sex"]
