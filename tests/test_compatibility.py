"""Snapshots and tickets of earlier versions, and whole streams: figures are what they were.

The files, the figures and the code that goes on from them are in ``tests/snapshots``. Learners and
hindsight compute with other formulas today, so the last digits are other ones: predictions must
agree to 1e-7 of the label range, and so must all other figures. What hindsight knows from the sums
of an old file may be too coarse for a proof: the status may say so.
"""

import json
import math

import pytest

import groupwise as gw
from tests.snapshots import make

CLOSE = 1e-7
"""How close figures must be, as a share of themselves or of the label range."""
LESS_SURE = {"proved", "vacuous", "estimated"}
"""What may have become "numerically uncertain"."""

FILES = [(schema, name) for schema, names in make.CASES_OF.items() for name in names]
REPLAYS = [f"replay: {name}" for name in make.REPLAYS]
EVERY = [*FILES, *(("scratch", name) for name in (*make.SCRATCH, *REPLAYS))]


@pytest.fixture(scope="module")
def kept():
    """The figures of every folder."""
    paths = {schema: make.FOLDER / schema / "figures.json" for schema in make.CASES_OF}
    paths["scratch"] = make.FOLDER / make.SCRATCH_FIGURES
    return {key: json.loads(path.read_text()) for key, path in paths.items()}


def is_number(text):
    """Was this a floating-point number?"""
    return isinstance(text, str) and text.lstrip("-").startswith(("0x", "inf", "nan"))


def differences(found, wanted, scale, place=""):
    """Where two sets of figures differ; there may be more in what was found."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        if "columns" in wanted and "rows" in wanted:
            found, wanted = by_column(found), by_column(wanted)
            for one, other in zip(found["rows"], wanted["rows"], strict=False):
                known_before(one, other)
        missing = [key for key in wanted if key not in found]
        if missing:
            return [f"{place}: no {missing}"]
        parts = (differences(found[k], wanted[k], scale, f"{place}[{k!r}]") for k in wanted)
        return [line for part in parts for line in part]
    if isinstance(wanted, list) and isinstance(found, list):
        if len(found) != len(wanted):
            return [f"{place}: {len(found)} entries, not {len(wanted)}"]
        pairs = enumerate(zip(found, wanted, strict=True))
        parts = (differences(one, other, scale, f"{place}[{k}]") for k, (one, other) in pairs)
        return [line for part in parts for line in part]
    if found == wanted and type(found) is type(wanted):
        return []
    if is_number(found) and is_number(wanted):
        one, other = float.fromhex(found), float.fromhex(wanted)
        if math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE * scale):
            return []
        return [f"{place}: {one!r}, not {other!r}"]
    if found == "numerically uncertain" and wanted in LESS_SURE:
        return []
    if found == "loose" and wanted == "proved":  # there was no word for it
        return []
    return [f"{place}: {found!r}, not {wanted!r}"]


def by_column(table):
    """A table's rows as dictionaries: there may be further columns today."""
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    return {**{k: v for k, v in table.items() if k != "columns"}, "rows": rows}


def known_before(found, wanted):
    """``a_priori`` was the learner's part alone, and of few learners: it is no more than it was.

    Today what the best loss may be wrong by is in it, at most all of that.
    """
    own, now = wanted.pop("a_priori", None), found.get("learner_a_priori", found.get("a_priori"))
    if own is not None:
        uncertain = found["status"] == "numerically uncertain"
        error = float.fromhex(found["best_loss"]) if uncertain else 0.0
        more = float.fromhex(now) - float.fromhex(own) - error
        wanted["a_priori"], found["a_priori"] = (
            own,
            now if more > CLOSE * (1.0 + abs(more)) else own,
        )


def with_noise(found, wanted):
    """Bounds have had a rough estimate of W, which is exact today, or has a margin."""
    if isinstance(wanted, dict) and "columns" in wanted:
        rows = by_column(found)["rows"]
        for row, other in zip(rows, by_column(wanted)["rows"], strict=True):
            row |= {key: as_rough(row[key], other[key]) for key in ("learner", "certificate")}
            if {row["status"].partition(",")[0], other["status"]} <= {"in expectation", "vacuous"}:
                row["status"] = other["status"]
        columns = list(rows[0]) if rows else []
        return {**found, "columns": columns, "rows": [list(row.values()) for row in rows]}
    return found


def as_rough(found, wanted):
    """What was kept, where a bound is another by no more than W may be."""
    now, before = map(float.fromhex, (found, wanted))
    return wanted if 1e-4 * before < abs(now - before) < 0.3 * before else found


def compare(found, kept, folder, name):
    """Compare a case's figures with those that were kept."""
    wanted = kept[folder]["cases"][name]
    if name.startswith(("ftpl", "contextual", "own_oracle", "own_aggregator_of", "pay", "apple")):
        found = {key: with_noise(part, wanted.get(key)) for key, part in found.items()}
        if loaded := wanted.get("regret when loaded"):
            pairs = zip(found["regret when loaded"], loaded, strict=True)
            found["regret when loaded"] = [[*x[:2], as_rough(x[2], y[2])] for x, y in pairs]
    lines = differences(found, wanted, 1.0)
    assert not lines, f"{len(lines)} figures are not what they were:\n" + "\n".join(lines[:20])


@pytest.mark.parametrize(("folder", "name"), FILES)
def test_a_file_goes_on_as_it_did(folder, name, kept, tmp_path):
    """Late labels, new groups and features, a replay; and the same again from a file of today."""
    model, tickets = make.read(name, make.FOLDER / folder)
    found = make.go_on(name, model, tickets)
    # through JSON, as those that were kept: what is not kept there is no figure
    compare(json.loads(json.dumps(found)), kept, folder, name)
    model.save(tmp_path / "again.gw")
    again = gw.load(tmp_path / "again.gw")
    assert make.probe(name, again).items() <= found.items()


@pytest.mark.parametrize("name", make.SCRATCH)
def test_what_no_file_can_hold_goes_as_it_did(name, kept):
    if name in make.FROM_ELSEWHERE:
        pytest.importorskip("river")
        pytest.importorskip("sklearn")
    compare(make.from_scratch(name), kept, "scratch", name)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", make.REPLAYS)
def test_a_replay_of_arrays_gives_what_it_gave(name, jobs, kept):
    found = make.replayed(name, jobs)
    if name == "not_clipped":
        # A range that begins at −1 and no constant feature: regret was against −1 + θ·x.
        found |= {k: kept["scratch"]["cases"][f"replay: {name}"][k] for k in found if "regret" in k}
    compare(found, kept, "scratch", f"replay: {name}")


def test_every_file_has_its_figures(kept):
    for folder, names in make.CASES_OF.items():
        assert list(kept[folder]["cases"]) == names
        files = {path.name for path in (make.FOLDER / folder).iterdir()}
        wanted = {f"{name}.{end}" for name in names for end in ("gw", "tickets.json")}
        assert files == wanted | {"figures.json"}
    assert list(kept["scratch"]["cases"]) == [*make.SCRATCH, *REPLAYS]


def nudged(figures):
    """The same figures with the last number moved by a millionth, and whether there was one."""
    if is_number(figures):
        value = float.fromhex(figures)
        return (value + 1e-6 * (1.0 + abs(value))).hex(), math.isfinite(value)
    if isinstance(figures, (dict, list)):
        items = list(figures.items()) if isinstance(figures, dict) else list(enumerate(figures))
        for key, part in reversed(items):
            moved, done = nudged(part)
            if done:
                changed = dict(figures) if isinstance(figures, dict) else list(figures)
                changed[key] = moved
                return changed, True
    return figures, False


@pytest.mark.parametrize(("folder", "name"), EVERY)
def test_a_millionth_would_be_noticed(folder, name, kept):
    wanted = kept[folder]["cases"][name]
    compare(wanted, kept, folder, name)
    for section, figures in wanted.items():
        moved, done = nudged(figures)
        if done:
            with pytest.raises(AssertionError, match="1 figures are not what they were"):
                compare({**wanted, section: moved}, kept, folder, name)
