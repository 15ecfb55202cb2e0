"""Ids that were added are never taken for new ones, and few new ones for those."""

from groupwise.serve.seen import FIRST, Seen


def test_what_was_added_is_found_one_by_one_and_together():
    seen = Seen()
    keys = [f"order-{number}" for number in range(4 * FIRST)]  # three filters
    for first in range(0, len(keys), 1_000):
        seen.add(keys[first : first + 1_000])
    assert seen.doubtful(keys) == keys
    assert all(key in seen for key in keys[::97])


def test_new_ones_are_seldom_doubtful_and_both_ways_agree():
    seen = Seen()
    seen.add(f"order-{number}" for number in range(4 * FIRST))
    others = [f"other-{number}" for number in range(20_000)]
    doubtful = seen.doubtful(others)
    assert len(doubtful) < 3 * len(others) / 200
    assert doubtful == [one for one in others if one in seen]


def test_the_same_again_takes_no_room():
    seen = Seen()
    for _ in range(3):
        seen.add(f"order-{number}" for number in range(FIRST))
    assert len(seen) == len(Seen())
    assert seen.doubtful([]) == []
