"""The experiments beyond the paper: small versions of all, and the whole of some."""

import io
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from groupwise.datasets import _files
from groupwise.errors import ConfigurationError, DatasetError
from groupwise.paper import lending, routing, variants
from groupwise.paper.beyond import STUDIES, run, study_of
from groupwise.paper.claims import Outcome, Request, expected
from groupwise.paper.classification import labeller, simulate
from groupwise.paper.lending import (
    FIELDS,
    generated_stream,
    on_applicants,
    on_generated,
    read,
    stand_in,
    stream_of,
    table_of,
)
from groupwise.paper.variants import Trace, Variant
from groupwise.regret.curves import Curve
from groupwise.report.tables import Table, show
from tests.few import few


def printed(table: Table, width: int) -> str:
    text = io.StringIO()
    show(Console(file=text, width=width), table)
    return text.getvalue()


@pytest.mark.parametrize("name", few(STUDIES, 1))
def test_small_versions_write_tables_figures_and_a_page(name: str, tmp_path: Path) -> None:
    seeds = 1 if name != "enumeration" else None
    if name == "enumeration":
        pytest.skip("it measures time; see the slow test")
    outcome, page = run(name, Request(out=tmp_path, seeds=seeds, rounds=60, jobs=1))
    assert outcome.tables
    assert outcome.figures
    record = json.loads((tmp_path / name / f"{name}.json").read_text())
    assert record["name"] == name
    text = page.read_text()
    assert study_of(name).title in text
    assert len(study_of(name).about) > 200
    for figure in outcome.figures:
        assert (tmp_path / name / f"{figure.name}.svg").exists()
    for table in (*outcome.tables, outcome.claims()):
        for width in (80, 120):
            shown = printed(table, width)
            assert "…" not in shown
            for cell in (cell for row in table.rows for cell in row):
                assert all(word in shown for word in cell.text.split()), cell.text


@pytest.mark.parametrize("name", ["routing", "lending"])
def test_tables_as_wide_as_they_get_fit_a_narrow_terminal(name: str) -> None:
    """With the widest figures of a whole run, in rows of the longest names."""
    wide = np.array([-12_345.6, -9_012.3])
    if name == "lending":
        groups = ("race=Amer-Indian-Eskimo", "always_on")
        people = stream_of(stand_in(1))._replace(groups=groups)
        runs = np.tile(np.abs(wide)[:, None, None], (1, 5, 2))
        table = lending.table_of("Applicants, unknown, keeping state", runs, people)
    else:
        curves = (Curve(np.array([1]), *np.full((4, 1), value)) for value in wide)
        status = {"rush_hour=false": "in expectation"}
        traces = [Trace({"rush_hour=false": curve}, status, frozenset()) for curve in curves]
        variant = Variant(
            "routing", "Last path dearer", partial(routing.simulate, "fixed"), "third"
        )
        table = variants.table_of(variant, traces)
    assert "…" not in printed(table, 80)
    assert len(printed(table, 80).split(table.title)) == 3


def test_applicants_are_generated_only_where_nobody_said_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(file: object, looked_in: object) -> Path:
        raise DatasetError("There is no network.")

    monkeypatch.setattr(_files, "_download", refused)
    monkeypatch.setattr(_files, "cache", lambda: tmp_path / "cache")
    monkeypatch.delenv(_files.ENVIRONMENT, raising=False)
    with pytest.raises(DatasetError, match=r"Neither adult_uci\.csv\.gz nor .* leave out --data"):
        run("lending", Request(out=tmp_path / "out", data=tmp_path))
    with pytest.raises(DatasetError, match="is not a folder"):
        run("lending", Request(out=tmp_path / "out", data=tmp_path / "nowhere"))
    assert not (tmp_path / "out").exists()
    said: list[str] = []
    request = Request(out=tmp_path / "out", seeds=1, rounds=200, jobs=1, say=said.append)
    outcome, page = run("lending", request)
    assert said == outcome.notes
    assert "generated people, not those of the UCI Adult data" in said[0]
    text = page.read_text("utf-8")
    assert text.index(said[0]) < text.index("<table")
    of_people = [table.title for table in outcome.tables[1:]]
    assert len(of_people) == 3
    assert all(title.startswith("Generated applicants, ") for title in of_people)


@pytest.mark.parametrize("name", STUDIES)
def test_expected_numbers_are_there(name: str) -> None:
    wanted = expected(name)
    assert set(wanted) == {"tolerance", "numbers"}
    assert all(np.isfinite(value) for value in wanted["numbers"].values())
    assert wanted["numbers"] or name == "enumeration"


def test_a_number_that_is_not_as_expected_is_said() -> None:
    wanted = {"tolerance": {"absolute": 0.5, "relative": 0.0}, "numbers": {"a": 1.0, "b": 2.0}}
    check = Outcome([], [], [], {"a": 1.4, "b": 3.0}).compared(wanted).checks[-1]
    assert not check.holds
    assert check.found == "b: 3, expected 2"
    assert Outcome([], [], [], {"a": 1.4, "b": 2.0}).compared(wanted).checks[-1].holds


def test_unknown_name() -> None:
    with pytest.raises(ConfigurationError, match="routing"):
        study_of("routine")


def test_a_run_depends_on_its_seed_alone() -> None:
    def regrets(seed: int) -> list[list[float]]:
        trace = simulate("separator", 3, 0.15, seed, 80)
        return [curve.regret.tolist() for curve in trace.curves.values()]

    assert regrets(5) == regrets(5)
    assert regrets(5) != regrets(6)
    assert labeller("separator", 3, 0).loss.unit == 3.0


def test_stand_in_and_file_give_the_same_kind_of_stream(tmp_path: Path) -> None:
    made = stream_of(stand_in()[:200])
    assert made.bits.shape == (200, len(FIELDS))
    assert made.groups[-1] == "always_on"
    path = tmp_path / "adult.data"
    line = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, "
    line += "White, Male, 2174, 0, 40, United-States, <=50K\n"
    path.write_text(line * 3)
    read_in = stream_of(read(path))
    assert read_in.labels.tolist() == [0.0] * 3
    path.write_text("age,income\n1,2\n")
    with pytest.raises(DatasetError, match="not the Adult data"):
        read(path)


def test_tasting_counts_what_really_happened() -> None:
    stream = generated_stream(300, 1)
    assert len(stream.rows) == 300
    tasted = on_generated(300, 1)
    assert tasted.rounds[-1] == 300
    assert (tasted.regret <= tasted.rounds).all()


@pytest.mark.parametrize("count", few([7, 1, 2, 30], 1))
def test_few_applicants_are_served(count: int) -> None:
    """Groups of which no round was explored have no estimate, and no payments."""
    people = stream_of(stand_in()[:count])
    tasted = on_applicants(people, "horizon known", 0)
    assert (tasted.payments[np.isnan(tasted.estimate)] == 0.0).all()
    assert np.isfinite(tasted.regret).all()
    shown = {cell.text for row in table_of("way", np.array([tasted]), people).rows for cell in row}
    assert ("–" in shown) == bool(np.isnan(tasted.estimate).any()) == (count > 2)


def test_a_few_rounds_of_lending_make_a_page(tmp_path: Path) -> None:
    path = tmp_path / "adult.data"
    line = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, "
    path.write_text((line + "White, Male, 2174, 0, 40, United-States, <=50K\n") * 5)
    for rounds in (1, 5):
        _, page = run("lending", Request(tmp_path, 1, rounds, 1, data=path))
        assert "Applicants" in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["routing", "classification-transductive"])
def test_a_third_of_the_baseline_on_a_few_seeds(name: str, tmp_path: Path) -> None:
    outcome, _ = run(name, Request(out=tmp_path, seeds=4))
    assert outcome.checks
    for check in outcome.checks:
        assert check.holds, f"{check.claim}: {check.found}"


@pytest.mark.slow
def test_enumeration_is_what_costs(tmp_path: Path) -> None:
    outcome, _ = run("enumeration", Request(out=tmp_path, rounds=20, jobs=1))
    assert all(check.holds for check in outcome.checks)


@pytest.mark.slow
def test_slope_of_apple_tasting_on_shorter_streams() -> None:
    lengths = [1_000, 3_162, 10_000, 31_623]
    worst = [np.mean([on_generated(t, seed).regret.max() for seed in (7, 8)]) for t in lengths]
    assert np.polyfit(np.log(lengths), np.log(worst), 1)[0] <= 0.70
