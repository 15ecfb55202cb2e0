"""Snapshots and tickets of earlier versions, and whole streams: every figure is what it was.

The files, the figures and the code that goes on from them are in ``tests/snapshots``. Figures are
compared bit for bit wherever the libraries below compute as they did where the figures were made;
``make.arithmetic`` tells. Elsewhere they may differ by rounding:

- everything depends on the C library's exponentials and logarithms (with and without FMA);
- hindsight, so regrets and certificates, also on LAPACK's eigenvectors (OpenBLAS picks its code by
  processor), bounds on numpy's logarithms (with and without AVX-512);
- the renewal of a stiff ridge at 16,384 rounds on LAPACK, too, and so does all that follows it;
  reading schema 1, and enumerated classes, on products by BLAS.

Neither the number of threads nor the width of the kernels' vectors makes a difference.
"""

import json
import math

import pytest

import groupwise as gw
from tests.snapshots import make

ROUNDING = 1e-9
"""How close figures must be where the arithmetic below is another."""
ELSEWHERE = 1e-12
"""And where river or scikit-learn compute, in whichever version is here."""

FILES = [(schema, name) for schema, names in make.CASES_OF.items() for name in names]
REPLAYS = [f"replay: {name}" for name in make.REPLAYS]
EVERY = [*FILES, *(("scratch", name) for name in (*make.SCRATCH, *REPLAYS))]


@pytest.fixture(scope="module")
def here():
    return make.arithmetic()


@pytest.fixture(scope="module")
def kept():
    """The figures of every folder, and the arithmetic with which they were made."""
    paths = {schema: make.FOLDER / schema / "figures.json" for schema in make.CASES_OF}
    paths["scratch"] = make.FOLDER / make.SCRATCH_FIGURES
    return {key: json.loads(path.read_text()) for key, path in paths.items()}


def needed(folder, name, section):
    """Which of the libraries below a section of a case's figures depends on."""
    products = folder == "schema_1" or name.startswith(("stiff", "enumerated"))
    if "regret" in section:
        return {"scalars", "arrays", "matrices"}
    return {"scalars", "matrices"} if products else {"scalars"}


def is_number(text):
    """Was this a floating-point number?"""
    return isinstance(text, str) and text.lstrip("-").startswith(("0x", "inf", "nan"))


def differences(found, wanted, tolerance, place=""):
    """Where two sets of figures differ: by more than the tolerance, or in a bit if that is 0."""
    if isinstance(wanted, (dict, list)) and type(found) is type(wanted):
        if isinstance(wanted, dict) and list(found) != list(wanted):
            return [f"{place}: {list(found)}, not {list(wanted)}"]
        if len(found) != len(wanted):
            return [f"{place}: {len(found)} entries, not {len(wanted)}"]
        keys = wanted if isinstance(wanted, dict) else range(len(wanted))
        parts = (differences(found[k], wanted[k], tolerance, f"{place}[{k!r}]") for k in keys)
        return [line for part in parts for line in part]
    if found == wanted and type(found) is type(wanted):
        return []
    if is_number(found) and is_number(wanted):
        one, other = float.fromhex(found), float.fromhex(wanted)
        if tolerance and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance):
            return []
        return [f"{place}: {one!r}, not {other!r}"]
    return [f"{place}: {found!r}, not {wanted!r}"]


def compare(found, kept, folder, name, here, tolerance=None):
    """Compare a case's figures with those that were kept."""
    wanted = kept[folder]["cases"][name]
    there = kept[folder]["arithmetic"]
    other = {part for part in there if here[part] != there[part]}
    case = name.removeprefix("replay: ")
    lines = differences(list(found), list(wanted), 0.0, "sections")
    for section in found.keys() & wanted.keys():
        allowed = ROUNDING if other & needed(folder, case, section) else 0.0
        if tolerance is not None:
            allowed = max(allowed, tolerance)
        lines += differences(found[section], wanted[section], allowed, section)
    assert not lines, f"{len(lines)} figures are not what they were:\n" + "\n".join(lines[:20])


@pytest.mark.parametrize(("folder", "name"), FILES)
def test_a_file_goes_on_as_it_did(folder, name, kept, here, tmp_path):
    """Late labels, new groups and features, a replay; and the same again from a file of today."""
    model, tickets = make.read(name, make.FOLDER / folder)
    found = make.go_on(name, model, tickets)
    # through JSON, as those that were kept: what is not kept there is no figure
    compare(json.loads(json.dumps(found)), kept, folder, name, here)
    model.save(tmp_path / "again.gw")
    again = gw.load(tmp_path / "again.gw")
    assert make.probe(name, again).items() <= found.items()


@pytest.mark.parametrize("name", make.SCRATCH)
def test_what_no_file_can_hold_goes_as_it_did(name, kept, here):
    if name in make.FROM_ELSEWHERE:
        pytest.importorskip("river")
        pytest.importorskip("sklearn")
    tolerance = ELSEWHERE if name in make.FROM_ELSEWHERE else None
    compare(make.from_scratch(name), kept, "scratch", name, here, tolerance)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", make.REPLAYS)
def test_a_replay_of_arrays_gives_what_it_gave(name, jobs, kept, here):
    compare(make.replayed(name, jobs), kept, "scratch", f"replay: {name}", here)


def test_every_file_has_its_figures(kept):
    for folder, names in make.CASES_OF.items():
        assert list(kept[folder]["cases"]) == names
        files = {path.name for path in (make.FOLDER / folder).iterdir()}
        wanted = {f"{name}.{end}" for name in names for end in ("gw", "tickets.json")}
        assert files == wanted | {"figures.json"}
    assert list(kept["scratch"]["cases"]) == [*make.SCRATCH, *REPLAYS]


def nudged(figures):
    """The same figures with the last number moved by one bit, and whether there was one."""
    if is_number(figures):
        value = float.fromhex(figures)
        return math.nextafter(value, math.inf).hex(), math.isfinite(value)
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
def test_one_bit_would_be_noticed(folder, name, kept):
    wanted = kept[folder]["cases"][name]
    there = kept[folder]["arithmetic"]
    compare(wanted, kept, folder, name, there)
    for section, figures in wanted.items():
        moved, done = nudged(figures)
        if done:
            with pytest.raises(AssertionError, match="1 figures are not what they were"):
                compare({**wanted, section: moved}, kept, folder, name, there)


def test_other_arithmetic_below_allows_for_rounding_and_no_more(kept):
    wanted = kept["schema_2"]["cases"]["plain"]
    other = {**kept["schema_2"]["arithmetic"], "matrices": "another"}
    section = "regret in the end"
    moved, _ = nudged(wanted[section])
    compare({**wanted, section: moved}, kept, "schema_2", "plain", other)
    far = json.loads(json.dumps(wanted))
    far[section]["rows"][0][2] = (float.fromhex(wanted[section]["rows"][0][2]) + 1e-6).hex()
    with pytest.raises(AssertionError, match="1 figures"):
        compare(far, kept, "schema_2", "plain", other)
    # predictions do not depend on matrices, so they are compared bit for bit all the same
    moved, _ = nudged(wanted["predictions"])
    with pytest.raises(AssertionError, match="1 figures"):
        compare({**wanted, "predictions": moved}, kept, "schema_2", "plain", other)
