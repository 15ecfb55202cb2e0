"""Text fields, and groups, with more values than features: the further ones share some."""

import copy
import subprocess
import sys
import warnings
from typing import Any

import pandas as pd
import polars
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, FeatureError, ManyLevelsWarning
from groupwise.features.declared import place_of
from tests.snapshots.make import FOLDER

MOST = 8
STREAM: list[tuple[dict[str, Any], float]] = [
    (
        {
            "code": f"p{(t * 7 + t * t) % 23}",
            "shop": 100 + (t * 11 + t * t) % 19,
            "sex": "fm"[t % 2],
            "x": t % 5 / 4,
        },
        (t * 13 % 17) / 17,
    )
    for t in range(150)
]
GROUPS = [gw.by("code"), gw.by("shop"), gw.by("sex")]
"""Text, which is a feature; numbers, whose groups have indicators; and few values."""

pytestmark = pytest.mark.filterwarnings("ignore::groupwise.errors.ManyLevelsWarning")


def a_model(**options):
    return gw.Groupwise(GROUPS, **{"max_levels": MOST, **options})


def frame_of(part=slice(None)):
    return pd.DataFrame([row for row, _ in STREAM[part]]).assign(y=[y for _, y in STREAM[part]])


def loop(model, part=slice(None)):
    found = []
    for row, label in STREAM[part]:
        ticket = model.predict(row)
        found.append(ticket.prediction)
        model.learn(ticket, label)
    return found


def by_kind(model, field):
    """How many features of a field have one level, and how many are shared."""
    names = model.feature_names
    return [sum(name.startswith(f"{field}{sign}") for name in names) for sign in "=#"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"features": ["sex", "x"]},
        {"features": {"x": (0, 1), "code": gw.hashed(5), "shop": gw.hashed(3)}},
        {"intercept": False, "indicators": False},
        {"max_levels": 1},
        {"max_levels": None},
    ],
)
@pytest.mark.slow
def test_loop_replay_chunks_and_snapshots_agree(options, tmp_path):
    """The bound is passed in the middle of a frame, between frames, and before a snapshot."""
    one = a_model(**options)
    expected = loop(one)
    for sizes in ([150], [1, 3, 4, 20, 122], [75, 75]):
        other, found, start = a_model(**options), [], 0
        for size in sizes:
            frame: Any = frame_of(slice(start, start + size))
            if size % 2:
                frame = polars.from_pandas(frame)
            found += other.replay(frame, "y").prediction.tolist()
            start += size
            other.save(tmp_path / "model.gw")
            other = copy.deepcopy(gw.load(tmp_path / "model.gw"))
        assert found == expected
        assert other.feature_names == one.feature_names
        assert other.hashed_fields == one.hashed_fields
        assert other.regret().rows == one.regret().rows
    model = a_model(**options)
    model.replay(frame_of(slice(0, 40)), "y")
    assert loop(model, slice(40, None)) == expected[40:]


def test_known_levels_keep_their_own_and_groups_stay_one_per_value():
    model = a_model()
    loop(model)
    assert by_kind(model, "code")[0] == MOST
    assert 0 < by_kind(model, "code")[1] <= MOST
    assert by_kind(model, "shop")[0] == MOST
    assert 0 < by_kind(model, "shop")[1] <= MOST
    assert by_kind(model, "sex") == [2, 0]
    assert model.hashed_fields == {"code": MOST, "shop": MOST}
    codes, shops = ({row[field] for row, _ in STREAM} for field in ("code", "shop"))
    assert {f"code={code}" for code in codes} | {f"shop={shop}" for shop in shops} <= set(
        model.group_names
    )
    assert not a_model().hashed_fields


def test_levels_that_fall_together_share_a_column():
    model = gw.Groupwise([], max_levels=2)
    for level in "abcdefghijkl":
        model.learn_one({"letter": level, "x": 1.0}, 0.5)
    assert model.feature_names[:4] == ["(intercept)", "letter=a", "x", "letter=b"]
    assert set(model.feature_names[4:]) == {"letter#0", "letter#1"}
    encoder = model._encoder
    for level in "abcdefghijklmnopq":
        for _ in range(2):
            row = encoder.encode({"letter": level, "x": 1.0}, [])
            name = f"letter={level}" if level in "ab" else f"letter#{place_of(level, 2)}"
            assert row.mapping() == {"(intercept)": 1.0, "x": 1.0, name: 1.0}


def test_a_thousand_postcodes_are_at_most_512_features():
    """One of each: with default features their number does not grow with that of the values."""
    frame = pd.DataFrame({"postcode": [f"{80000 + i}" for i in range(1025)], "x": 0.5, "y": 0.5})
    model = gw.Groupwise([gw.by("postcode")])
    row = model._encoder.encode_frame(frame.drop(columns="y"), model.groups.of_frame(frame))
    assert len(row.new) <= 1 + 256 + 256
    assert sum(feature.kind == "level" for feature in row.new) == 256
    numbers = frame.assign(postcode=range(1025))  # whose groups would have an indicator each
    row = model._encoder.encode_frame(numbers.drop(columns="y"), model.groups.of_frame(numbers))
    assert len(row.new) <= 2 + 256 + 256
    assert sum(feature.kind == "indicator" for feature in row.new) == 256


def test_declared_levels_beyond_the_bound_are_an_error():
    codes = [row["code"] for row, _ in STREAM]
    bad = next(t for t in range(150) if len(set(codes[: t + 1])) > MOST)
    message = f"'code' holds '{codes[bad]}', one level more than the 8 .*'code': gw.hashed"
    loop_, replay = (a_model(features=["code", "x"]) for _ in range(2))
    loop(loop_, slice(0, bad))
    replay.replay(frame_of(slice(0, 3)), "y")
    for model, fail in (
        (loop_, lambda: loop_.learn_one(*STREAM[bad])),
        (replay, lambda: replay.replay(frame_of(slice(3, None)), "y")),
    ):
        rows, names = model.regret().rows, model.feature_names
        with pytest.raises(FeatureError, match=message) as caught:
            fail()
        assert caught.value.row == (bad - 3 if model is replay else None)
        assert model.regret().rows == rows
        assert model.feature_names == names
    loop_.learn_one(*STREAM[0])


def test_it_is_said_once(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = a_model()
        loop(model, slice(0, 75))
        model.save(tmp_path / "model.gw")
        model = copy.deepcopy(gw.load(tmp_path / "model.gw"))
        model.replay(frame_of(slice(75, None)), "y")
    said = [str(one.message) for one in caught if one.category is ManyLevelsWarning]
    assert [text.split(" has ")[0] for text in said] == ["Column 'code'", "Column 'shop'"]
    assert "gw.hashed(8)" in said[0]
    assert all(one.filename == __file__ for one in caught)


def test_where_warnings_are_errors_the_label_has_been_learned():
    model, other = a_model(), a_model()
    loop(other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row, label in STREAM:
            ticket = model.predict(row)
            try:
                model.learn(ticket, label)
            except ManyLevelsWarning:
                with pytest.raises(gw.errors.TicketError, match="settled already"):
                    model.learn(ticket, label)
    assert model.regret().rows == other.regret().rows


def test_declared_as_hashed_nobody_is_warned():
    features: Any = {"code": gw.hashed(5), "shop": gw.hashed(3), "x": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = gw.Groupwise(GROUPS[:2], features=features)
        loop(model)
    assert by_kind(model, "code") == [0, 5]
    assert by_kind(model, "shop") == [0, 3]
    assert model.hashed_fields == {"code": 5, "shop": 3}


def test_hashed_values_are_text_or_numbers_in_rows_and_frames():
    values = [1, 1.0, "1", True, 2.5, "north", 10**20]
    names = ["1", "1", "1", "true", "2.5", "north", str(10**20)]
    model = gw.Groupwise([], features={"a": gw.hashed(97)}, intercept=False)
    for value, name in zip(values, names, strict=True):
        row = model._encoder.encode({"a": value}, [])
        assert row.names[row.indices[0]] == f"a#{place_of(name, 97)}"
    for column in ([1, 2, 1], [1.0, 2.0, 1.0], ["1", "2", "1"], [True, False, True], [1, "2", "1"]):
        one, other = (gw.Groupwise([], features={"a": gw.hashed(97)}) for _ in range(2))
        for value in column:
            one.learn_one({"a": value}, 0.5)
        other.replay(pd.DataFrame({"a": column, "y": 0.5}), "y")
        assert one.feature_names == other.feature_names
        assert one.regret().rows == other.regret().rows
    for value in (None, float("nan")):
        for wrong in (lambda v: model.predict({"a": v}), _in_a_frame(model)):
            with pytest.raises(FeatureError, match=f"'a' is {value}"):
                wrong(value)
    with pytest.raises(FeatureError, match="holds \\[1\\] of type list"):
        model.predict({"a": [1]})


def _in_a_frame(model):
    def replay(value):
        kind = {"dtype": "float64"} if value is not None else {"dtype": object}
        model.replay(pd.DataFrame({"a": pd.Series([1.0, value], **kind), "y": 0.5}), "y")

    return replay


def test_the_hash_is_the_same_in_every_process():
    found = {level: place_of(level, 256) for level in ("80331", "", "Zürich", "\udcff")}
    code = (
        "from groupwise.features.declared import place_of\n"
        f"print([place_of(level, 256) for level in {list(found)!r}])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(list(found.values()))
    assert found["80331"] == "99"


def test_outstanding_tickets_may_pass_the_bound():
    """Every level is new when its ticket is issued, and where it goes is decided by its label."""
    model, other = (gw.Groupwise([], max_levels=3) for _ in range(2))
    tickets = [model.predict({"letter": level}) for level in "abcdefg"]
    for ticket in reversed(tickets):
        model.learn(ticket, 0.25)
    for level in "gfedcba":
        other.learn_one({"letter": level}, 0.25)
    assert model.feature_names == other.feature_names
    assert model.feature_names[:4] == ["(intercept)", "letter=g", "letter=f", "letter=e"]


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "many"])
def test_bad_bounds(bad):
    with pytest.raises(FeatureError, match="max_levels"):
        gw.Groupwise([], max_levels=bad)
    with pytest.raises(FeatureError, match="hashed"):
        gw.hashed(bad)


def test_contexts_are_not_hashed():
    learner = gw.learners.ContextualFTPL(gw.oracles.Stumps(), [[0.0], [1.0]])
    with pytest.raises(ConfigurationError, match="numbers"):
        gw.Groupwise([], learner, loss=gw.losses.ZeroOne(), features={"a": gw.hashed(2)})


@pytest.mark.parametrize("schema", ["schema_1", "schema_2"])
def test_models_of_before_have_no_bound(schema):
    model = gw.load(FOLDER / schema / "many_features.gw")
    assert model.max_levels is None
    known = len(model.feature_names)
    for i in range(300):
        model._encoder.admit(model._encoder.encode({"another": f"level {i}"}, []))
    assert len(model.feature_names) == known + 300


SHOPS = """
import resource, warnings
import numpy as np, polars, groupwise as gw

warnings.simplefilter("ignore")
for shops in (500, 20_000):
    generator = np.random.default_rng(0)
    names = [f"s{i}" for i in generator.permutation(np.repeat(np.arange(shops), 3))]
    numbers = {"x": generator.random(3 * shops), "y": generator.random(3 * shops)}
    model = gw.Groupwise([gw.by("shop")])
    model.replay(polars.DataFrame({"shop": names, **numbers}), "y", jobs=1)
    assert len(model.group_names) == shops + 1
    assert len(model.feature_names) <= 2 + 256 + 256
    model.regret(largest=2)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells no such figure")
def test_very_many_groups_of_three_rows_take_little_memory():
    """A hundred thousand in 2 GB, so a fifth in 400 MB; with 514 columns each it would be 42 GB."""
    run = subprocess.run([sys.executable, "-c", SHOPS], capture_output=True, text=True, check=True)
    few, many = (int(line) for line in run.stdout.split())
    assert many - few < 400_000_000 / (1 if sys.platform == "darwin" else 1_024)


@pytest.mark.slow
def test_more_features_than_memory_is_an_error_that_says_so():
    """Half a million numbers in a row: every two of them would have one in a matrix."""
    model = gw.Groupwise([])
    with pytest.raises(FeatureError, match=r"no memory for 500,001 features.*features=\[\.\.\.\]"):
        model.learn_one({f"x{i}": 1.0 for i in range(500_000)}, 0.5)
    assert model.feature_names == ["(intercept)"]
    model.learn_one({"x": 1.0}, 0.5)
    assert model.regret()["always_on"]["rounds"] == 1
