"""The command, from the outside: what it writes, says and returns."""

import csv
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groupwise.cli import app
from groupwise.datasets import PAPER_SEEDS, _files, adult, synthetic
from groupwise.datasets import published as published_tables
from groupwise.datasets.adult import RACES, ROWS
from groupwise.errors import DatasetError
from groupwise.paper import engine, figures, published, reproduction, tables
from groupwise.paper.published import Settings
from tests.cli.commands import refused

pytestmark = pytest.mark.slow

REGRETS = ("baseline_regret", "algorithm_regret")


def invoke(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.fixture
def small(monkeypatch, one_figure):
    """Short synthetic streams, so that a whole run is quick."""
    monkeypatch.setattr(
        published, "_made", lambda name: synthetic(name.removeprefix("synthetic-"), rows=400)
    )


@pytest.fixture
def one_figure(monkeypatch):
    """Only the first figure of every table: drawing takes longer than the runs."""
    every = figures.figures_of
    monkeypatch.setattr(reproduction, "figures_of", lambda result: [next(iter(every(result)))])


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No network, an empty cache, no folder named by the environment."""

    def refused(file, looked_in):
        raise DatasetError(f"{file.name} is not in {looked_in[-1]}; it is at {file.address}.")

    monkeypatch.setattr(_files, "_download", refused)
    monkeypatch.setattr(_files, "cache", lambda: tmp_path / "cache")
    monkeypatch.delenv(_files.ENVIRONMENT, raising=False)


@pytest.fixture(scope="module")
def medical(shared_data, insurance, tmp_path_factory):
    """One complete reproduction: the answer and its folder."""
    out = tmp_path_factory.mktemp("medical")
    return invoke("medical", "--data", shared_data, "--out", out, "--jobs", 1), out


def test_help_is_quick_and_brings_nothing_heavy():
    heavy = "numpy numba scipy matplotlib rich.table jinja2 joblib ray pooch"
    code = (
        "import sys; from groupwise.cli import app\n"
        "try: app(['--help'])\n"
        f"except SystemExit: print('brought', *set({heavy.split()}) & set(sys.modules))"
    )
    times = []
    for _ in range(3):
        start = time.perf_counter()
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        times.append(time.perf_counter() - start)
    assert "reproduce" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "brought"
    assert min(times) < 0.5


def test_every_option_of_the_issue_is_there():
    answer = invoke("--help").output
    for option in ("order", "seeds", "data", "out", "jobs", "engine", "aggregator", "learner"):
        assert f"--{option} " in answer
    for flag in ("forward", "clip", "no-always-on", "play"):
        assert f"--{flag} " in answer


def test_medical_agrees_and_says_so(medical):
    answer, out = medical
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.count("agrees") == 2
    line = next(line for line in answer.stdout.splitlines() if line.strip().startswith("smoker"))
    for figure in ("274", "5.06 ± 0.17", "1.47 ± 0.09", "0.90"):
        assert figure in line
    assert str((out / "index.html").resolve()) in answer.stdout


def test_medical_files(medical):
    _, out = medical
    for order in ("shuffled", "sorted"):
        stored = json.loads((out / f"medical-{order}.json").read_text("utf-8"))
        assert list(stored) == ["experiment", "order", "settings", "rows"]
        assert (stored["experiment"], stored["order"]) == ("medical", order)
        assert stored["settings"] == {**Settings().to_dict(), "seeds": list(PAPER_SEEDS)}
        for row in stored["rows"]:
            assert list(row) == [
                *("group", "size", *REGRETS, "best_in_hindsight_loss", "exact", "published"),
            ]
            for nested in (row, row["exact"], row["published"]):
                assert all(len(nested[key]) == 2 for key in REGRETS)
            # The exact regret is against the loss on one row more, so it is never larger.
            gap = row["exact"]["best_in_hindsight_loss"] - row["best_in_hindsight_loss"]
            assert gap >= 0
            for key in REGRETS:
                assert row[key][0] - row["exact"][key][0] == pytest.approx(gap)
        with (out / f"medical-{order}.csv").open(newline="", encoding="utf-8") as stream:
            table = list(csv.DictReader(stream))
        assert [row["group"] for row in table] == [row["group"] for row in stored["rows"]]
        for line, row in zip(table, stored["rows"], strict=True):
            assert float(line["algorithm_regret_mean"]) == row["algorithm_regret"][0]
            best = row["exact"]["best_in_hindsight_loss"]
            assert float(line["exact_best_in_hindsight_loss"]) == best
        latex = (out / f"medical-{order}.tex").read_text("utf-8")
        assert latex.count(r"$\pm$") == 4 * 12
        figures = {path.name for path in (out / "figures").glob(f"medical-{order}-*")}
        kinds = ["regret", "fraction", "per-round", "certificate"]
        kinds += ["figure-1"] if order == "shuffled" else []
        assert figures == {f"medical-{order}-{k}.{end}" for k in kinds for end in ("svg", "pdf")}
    page = (out / "index.html").read_text("utf-8")
    for text in ("Medical costs, sorted by age", "adanormalhedge", "numpy", "non-smoker"):
        assert text in page
    assert not list(out.rglob("*.part"))


@pytest.mark.usefixtures("one_figure")
def test_a_second_start_computes_nothing(medical, shared_data, monkeypatch):
    answer, out = medical

    def run_tasks(tasks, engine, jobs):
        assert not tasks
        return iter(())

    monkeypatch.setattr(reproduction, "run_tasks", run_tasks)
    again = invoke("medical", "--data", shared_data, "--out", out, "--jobs", 1)
    assert again.exit_code == 0, again.output
    assert again.stdout == answer.stdout
    other = invoke("medical", "--data", shared_data, "--out", out, "--jobs", 1, "--clip")
    assert isinstance(other.exception, AssertionError)  # other settings are other runs


@pytest.mark.usefixtures("small")
def test_an_interrupt_keeps_what_is_done(tmp_path, monkeypatch):
    real = engine.run_tasks
    done: list[Any] = []

    def interrupted(tasks, engine, jobs):
        for number, found in real(tasks, engine, 1):
            if len(done) == 3:
                raise KeyboardInterrupt
            done.append(number)
            yield number, found

    arguments = ("synthetic-min", "--order", "sorted", "--out", tmp_path, "--jobs", 1)
    monkeypatch.setattr(reproduction, "run_tasks", interrupted)
    answer = invoke(*arguments)
    assert answer.exit_code == 130
    assert answer.stderr.splitlines()[-1].startswith("groupwise: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == [".cache"]
    assert len(list((tmp_path / ".cache").iterdir())) == 3

    def the_rest(tasks, engine, jobs):
        assert len(tasks) == len(PAPER_SEEDS) - 3
        return real(tasks, engine, jobs)

    monkeypatch.setattr(reproduction, "run_tasks", the_rest)
    resumed = invoke(*arguments)
    monkeypatch.setattr(reproduction, "run_tasks", real)
    fresh = invoke(*arguments[:-3], tmp_path / "fresh", "--jobs", 2)
    stored = [
        (out / "synthetic-min-sorted.json").read_text() for out in (tmp_path, tmp_path / "fresh")
    ]
    assert stored[0] == stored[1]
    # 400 rows are not the published 100,000: the figures miss, and the exit code says so.
    assert resumed.exit_code == fresh.exit_code == 1
    assert "misses in circle" in resumed.stdout


@pytest.mark.slow
def test_ctrl_c(tmp_path):
    command = [sys.executable, "-c", "from groupwise.cli import main; main()", "reproduce"]
    process = subprocess.Popen(
        [*command, "synthetic-mean", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".cache/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("groupwise: interrupted")
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.usefixtures("one_figure")
def test_a_miss_is_exit_code_1_only_under_the_papers_settings(
    shared_data, insurance, tmp_path, monkeypatch
):
    table = {
        key: tuple(row._replace(best_loss=row.best_loss + 0.06) for row in rows)
        for key, rows in published_tables().items()
    }
    monkeypatch.setattr(tables, "published", lambda: table)
    arguments = ("medical", "--data", shared_data, "--jobs", 1, "--order", "sorted")
    assert invoke(*arguments, "--out", tmp_path / "a").exit_code == 1
    for flags in (
        ("--clip",),
        ("--forward",),
        ("--play", "mean"),
        ("--no-always-on",),
        ("--aggregator", "specialists"),
        ("--seeds", 2),
    ):
        answer = invoke(*arguments, "--out", tmp_path / "b", *flags)
        assert answer.exit_code == 0, (flags, answer.output)
        assert "not judged" in answer.stdout


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["medcal"], "Did you mean medical?"),
        (["adult"], "adult_reconstruction.csv"),
        (["medical"], "insurance.csv"),
        (["medical", "--data", "nowhere"], "nowhere is not a folder"),
        (["synthetic-mean", "--engine", "spark"], "no engine 'spark'"),
        (["synthetic-mean", "--learner", "trees"], "no learner 'trees'"),
        (["synthetic-mean", "--aggregator", "votes"], "no aggregator 'votes'"),
        (["synthetic-mean", "--out", __file__], "Cannot write to"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = invoke(*arguments)
    assert answer.exit_code == 2
    (line,) = answer.stderr.splitlines()
    assert line.startswith("groupwise: ")
    assert said in line
    assert answer.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_is_refused(tmp_path):
    (tmp_path / "insurance.csv").write_text("age,sex\n19,female\n")
    answer = invoke("medical", "--data", tmp_path, "--out", tmp_path / "out")
    assert answer.exit_code == 2
    assert "missing bmi, charges, children, region, smoker" in answer.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("offline", "small")
def test_all_does_without_the_file_that_may_not_be_passed_on(shared_data, insurance, tmp_path):
    answer = invoke(
        *("all", "--data", shared_data, "--out", tmp_path / "out"),
        *("--seeds", 1, "--order", "sorted", "--jobs", 1),
    )
    assert answer.exit_code == 0, answer.output
    (note,) = (line for line in answer.stderr.splitlines() if "adult" in line)
    for part in ("adult_reconstruction.csv", "https://raw.githubusercontent.com", "--data"):
        assert part in note
    stored = {path.name for path in (tmp_path / "out").glob("*.json")}
    assert stored == {f"{name}-sorted.json" for name in published.EXPERIMENTS if name != "adult"}
    assert "adult is left out" in (tmp_path / "out" / "index.html").read_text("utf-8")


@pytest.mark.usefixtures("offline", "small")
def test_all_does_not_do_without_a_wrong_file(shared_data, insurance, tmp_path):
    (tmp_path / "insurance.csv").write_bytes(Path(insurance).read_bytes())
    (tmp_path / "adult_reconstruction.csv").write_text("age\n19\n")
    answer = invoke("all", "--data", tmp_path, "--out", tmp_path / "out")
    assert answer.exit_code == 2
    assert "adult_reconstruction.csv has other columns" in answer.stderr


def adult_file(path, sex):
    """Rows with the real file's columns, number, levels and quirks, income from the groups."""
    draw = random.Random(1)
    header = [
        *("hours-per-week", "age", "capital-gain", "capital-loss", "workclass", "education-num"),
        *("education", "marital-status", "relationship", "race", sex, "native-country"),
        *("income", "occupation"),
    ]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for _ in range(ROWS):
            age, schooling = draw.randint(17, 90), draw.randint(1, 16)
            race, who = draw.choice(RACES), draw.choice(["Male", "Female"])
            income = 300 * age * (2 if who == "Male" else 1) + 1000 * schooling
            writer.writerow(
                [
                    *(draw.randint(1, 99), age, 0, 0, draw.choice(["?", "Private"]), schooling),
                    *("HS-grad", draw.choice(["Divorced", "Widowed"]), "Wife", race, who),
                    *(draw.choice(["?", "Mexico"]), income + draw.randint(0, 99), "?"),
                ]
            )


@pytest.mark.usefixtures("offline", "one_figure")
@pytest.mark.parametrize("sex", ["gender", "sex"])
def test_adult_from_file_to_page(tmp_path, sex):
    adult_file(tmp_path / "adult_reconstruction.csv", sex)
    answer = invoke(
        *("adult", "--data", tmp_path, "--out", tmp_path / "out"),
        *("--seeds", 1, "--order", "sorted", "--jobs", 1),
    )
    assert answer.exit_code == 0, answer.output
    assert "not judged" in answer.stdout
    stored = json.loads((tmp_path / "out" / "adult-sorted.json").read_text("utf-8"))
    data = adult(tmp_path / "adult_reconstruction.csv")
    assert {row["group"]: row["size"] for row in stored["rows"]} == data.group_sizes
    everybody = stored["rows"][-1]
    # One line does not fit both sexes; a model for each does.
    assert everybody["algorithm_regret"][0] < 0 < everybody["baseline_regret"][0]
    assert "HighSchool&amp;less" in (tmp_path / "out" / "index.html").read_text("utf-8")
    assert r"HighSchool\&less" in (tmp_path / "out" / "adult-sorted.tex").read_text("utf-8")


def test_a_misspelt_study_is_answered_with_the_name():
    assert "Did you mean claims" in refused("reproduce", "claimz")
