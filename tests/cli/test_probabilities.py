"""Labels that are yes or no, or classes: ``run``, ``compare`` and what follows from a snapshot."""

import html
import json
import math
import random
import tomllib

import numpy as np
import pandas as pd
import pytest

import groupwise as gw
from tests.cli.commands import (
    OUTPUTS,
    predictions_of,
    refused,
    regret_of,
    succeed,
    write_rows,
)

HEADER = ("city", "pay", "repaid")
MODES = ("bus", "car", "walk")

pytestmark = pytest.mark.usefixtures("two_panels")


def people(rows=240, seed=0):
    """Rows of (city, pay, yes or no): pay speaks for yes in one city and against it in another."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(rows):
        city, pay = int(generator.integers(2)), int(generator.integers(18, 65))
        score = (2 * city - 1) * (pay - 40) / 8
        found.append(
            (("north", "south")[city], pay, ("no", "yes")[int(generator.random() < _sigma(score))])
        )
    return found


def _sigma(score):
    return 1.0 / (1.0 + math.exp(-score))


def travellers(rows=200, seed=0):
    """Rows of (city, pay, how they travel)."""
    generator = np.random.default_rng(seed)
    cities, ages = generator.integers(2, size=rows), generator.integers(18, 65, size=rows)
    scores = np.column_stack([np.zeros(rows), (ages - 40) / 12, cities * 2.0 - 1.0])
    noise = generator.gumbel(size=scores.shape)
    chosen = np.argmax(scores + noise, axis=1)
    return [
        (("north", "south")[c], int(a), MODES[k])
        for c, a, k in zip(cities, ages, chosen, strict=True)
    ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A file, the folder of its run, and what the run printed."""
    folder = tmp_path_factory.mktemp("yes")
    data = write_rows(folder / "people.csv", HEADER, people())
    return data, folder / "out", succeed("run", data, "--target", "repaid", "--out", folder / "out")


def test_it_needs_no_option_but_the_target(finished):
    _, out, result = finished
    assert {path.name for path in out.iterdir()} == OUTPUTS
    assert "Predicted is the probability that repaid is 'yes', not 'no'" in result.stdout
    assert "Mean log loss 0." in result.stdout
    assert "Calibration error: " in result.stdout
    assert "typically off" not in result.stdout


def test_the_numbers_are_those_of_the_model(finished):
    data, out, _ = finished
    frame = pd.read_csv(data)
    model = gw.Groupwise(
        [gw.by("city")],
        features={"pay": (frame.pay.min(), frame.pay.max())},
        loss=gw.losses.Log(classes=["no", "yes"]),
    )
    expected = []
    for row in frame.to_dict("records"):
        label = row.pop("repaid")
        expected.append(model.predict_one(row)["yes"])
        model.learn_one(row, label)
    found = predictions_of(out / "predictions.csv")
    assert list(found[0]) == ["row", "probability:yes", "label", "groups"]
    assert [float(row["probability:yes"]) for row in found] == expected
    assert [row["label"] for row in found] == frame.repaid.tolist()
    record = json.loads((out / "regret.json").read_text("utf-8"))
    assert record["calibration"]["groupwise"]["yes"] == model.calibration().rows
    ours = {row["group"]: row for row in model.regret()}
    for row in record["rows"]:
        assert row["loss"] == pytest.approx(ours[row["group"]]["loss"], rel=1e-12)
        assert row["best_kind"] == "exact"
        assert row["best_low"] <= row["best_high"] * (1 + 1e-9)
        assert row["regret"] <= row["certificate"]


def test_losses_by_hand(finished):
    _, out, _ = finished
    losses = dict.fromkeys(["city=north", "city=south", "always_on"], 0.0)
    for row in predictions_of(out / "predictions.csv"):
        chance = float(row["probability:yes"])
        loss = -math.log(chance if row["label"] == "yes" else 1.0 - chance)
        for group in row["groups"].split("; "):
            losses[group] += loss
    for group, row in regret_of(out).items():
        assert row["loss"] == pytest.approx(losses[group])


def test_the_best_in_hindsight_by_hand(tmp_path):
    """Where a group's only feature is that it is the group: its base rate."""
    counts = {"a": (12, 28), "b": (30, 10)}
    rows = [
        (city, label) for city, (no, yes) in counts.items() for label in ["no"] * no + ["yes"] * yes
    ]
    data = write_rows(tmp_path / "data.csv", ("city", "y"), rows[::2] + rows[1::2])
    succeed("run", data, "--target", "y", "--out", tmp_path / "out")
    found = regret_of(tmp_path / "out")

    def entropy(no, yes):
        return -no * math.log(no / (no + yes)) - yes * math.log(yes / (no + yes))

    for city, pair in counts.items():
        assert found[f"city={city}"]["best_loss"] == pytest.approx(entropy(*pair), rel=1e-9)
    total = sum(entropy(*pair) for pair in counts.values())
    assert found["always_on"]["best_loss"] == pytest.approx(total, rel=1e-9)


def test_the_page(finished):
    _, out, _ = finished
    page = (out / "report.html").read_text("utf-8")
    for text in (
        "Mean log loss 0.",
        "(base rate alone: 0.6",
        "The probability that repaid is &#39;yes&#39;, not &#39;no&#39;, was predicted for 240",
        "log loss, nats per round",
        "Calibration",
        "by chance",
        "share of positive labels",
        "proved",
        "regret, nats",
        "A look ahead: the classes of the label",
        "<dd>portfolio</dd>",
    ):
        assert text in page, text
    for text in ("RMSE", "typically off", "squared error beyond", "Range of the label"):
        assert text not in page


def test_the_printed_proposal_runs_the_same(finished, tmp_path):
    data, out, result = finished
    start = result.stdout.index("target = ")
    config = tmp_path / "config.toml"
    config.write_text(result.stdout[start : result.stdout.index("Predicted is")])
    assert tomllib.loads(config.read_text())["classes"] == ["no", "yes"]
    succeed("run", data, "--config", config, "--out", tmp_path / "out")
    first, second = (folder / "predictions.csv" for folder in (out, tmp_path / "out"))
    assert first.read_bytes() == second.read_bytes()
    assert json.loads((tmp_path / "out" / "regret.json").read_text())["looked_ahead"] == []


@pytest.mark.slow
def test_0_and_1_are_the_same_and_may_be_a_number(finished, tmp_path):
    _, out, _ = finished
    rows = [(*row[:2], int(row[2] == "yes")) for row in people()]
    data = write_rows(tmp_path / "data.csv", HEADER, rows)
    succeed("run", data, "--target", "repaid", "--out", tmp_path / "same")
    found = predictions_of(tmp_path / "same" / "predictions.csv")
    assert [row["probability:1"] for row in found] == [
        row["probability:yes"] for row in predictions_of(out / "predictions.csv")
    ]
    assert regret_of(tmp_path / "same") == regret_of(out)
    options = ("--task", "number", "--out", tmp_path / "number")
    result = succeed("run", data, "--target", "repaid", *options)
    assert "typically off" in result.stdout
    assert "prediction" in predictions_of(tmp_path / "number" / "predictions.csv")[0]


def test_the_other_value(finished, tmp_path):
    data, out, _ = finished
    options = ("--positive", "no", "--out", tmp_path / "out")
    result = succeed("run", data, "--target", "repaid", *options)
    assert "is 'no', not 'yes'" in result.stdout
    turned = predictions_of(tmp_path / "out" / "predictions.csv")
    for row, before in zip(turned, predictions_of(out / "predictions.csv"), strict=True):
        assert float(row["probability:no"]) == pytest.approx(1 - float(before["probability:yes"]))


def test_init_says_what_the_label_is(finished):
    data, *_ = finished
    proposed = tomllib.loads(succeed("init", data, "--target", "repaid").stdout)
    assert (proposed["task"], proposed["classes"]) == ("probability", ["no", "yes"])
    assert (proposed["learner"], proposed["aggregator"]) == ("portfolio", "specialists")
    assert "range" not in proposed
    assert tomllib.loads(succeed("init", data).stdout)["target"] == "pay"


@pytest.fixture
def snapshot(finished, tmp_path):
    """A copy of the run's snapshot, to be written over."""
    _, out, _ = finished
    place = tmp_path / "model.gw"
    place.write_bytes((out / "model.gw").read_bytes())
    return place


def test_predict_writes_probabilities(snapshot, tmp_path):
    rows = [row[:2] for row in people(5, seed=1)]
    data = write_rows(tmp_path / "new.csv", HEADER[:2], rows)
    succeed("predict", snapshot, data, "--out", tmp_path / "p.csv")
    model = gw.load(snapshot)
    found = predictions_of(tmp_path / "p.csv")
    assert list(found[0]) == ["row", "probability:yes", "groups"]
    for row, values in zip(found, rows, strict=True):
        expected = model.predict_one(dict(zip(HEADER, values, strict=False)))
        assert float(row["probability:yes"]) == expected["yes"]


def test_learn_takes_classes_and_goes_on(snapshot, tmp_path):
    more = people(20, seed=1)
    model, loss = gw.load(snapshot), 0.0
    for city, pay, label in more:
        loss -= math.log(model.predict_one({"city": city, "pay": pay})[label])
        model.learn_one({"city": city, "pay": pay}, label)
    data = write_rows(tmp_path / "more.csv", HEADER, more)
    result = succeed("learn", snapshot, data)
    assert "20 rows learned, 260 in all; their mean log loss is" in result.stdout
    assert f"{loss / 20:.6g} nats" in result.stdout
    assert gw.load(snapshot).calibration().rows == model.calibration().rows


def test_learn_refuses_what_is_no_class(snapshot, tmp_path):
    before = snapshot.read_bytes()
    rows = [*people(3), ("north", 30, "perhaps")]
    said = refused("learn", snapshot, write_rows(tmp_path / "bad.csv", HEADER, rows))
    assert "Row 4 of" in said
    assert "the label is 'perhaps', none of the classes 'no', 'yes'" in said
    assert snapshot.read_bytes() == before
    rows[3] = ("north", 30, "")
    result = succeed("learn", snapshot, write_rows(tmp_path / "gap.csv", HEADER, rows))
    assert "3 rows learned" in result.stdout
    assert "1 row has no label and taught nothing" in result.stderr


def test_regret_of_a_snapshot(snapshot):
    shown = succeed("regret", snapshot).stdout
    assert "log loss," in shown  # the rest stands over the columns beside
    assert "yes, %" in shown
    assert "regret is against the best logistic model with |x·θ| ≤ 8 in hindsight" in shown
    record = json.loads(succeed("regret", snapshot, "--json").stdout)
    assert record["calibration"]["groupwise"]["yes"] == gw.load(snapshot).calibration().rows
    assert {"best_kind", "best_low", "best_high", "note"} <= set(record["rows"][0])


def test_a_best_that_is_known_to_lie_between(tmp_path):
    model = gw.Groupwise(
        [gw.by("city")], learner=gw.learners.Logistic(keep_rows=10), loss=gw.losses.Log()
    )
    for city, pay, label in people(60):
        model.learn_one({"city": city, "pay": pay / 65}, label == "yes")
    model.save(tmp_path / "model.gw")
    shown = succeed("regret", tmp_path / "model.gw").stdout
    assert " to 0." in shown
    assert "Where the best is a range" in shown


def test_a_model_of_true_and_false_made_in_python(tmp_path):
    models = {}
    for name, loss in {
        "plain": gw.losses.Log(),
        "named": gw.losses.Log(classes=[False, True]),
    }.items():
        models[name] = gw.Groupwise([gw.by("city")], loss=loss)
        models[name].learn_one({"city": "north", "pay": 30}, True)
        models[name].save(tmp_path / f"{name}.gw")
    rows = people(10)
    for words in (("false", "true"), ("False", "True")):
        truth = [(city, pay, words[label == "yes"]) for city, pay, label in rows]
        data = write_rows(tmp_path / "data.csv", HEADER, truth)
        for name in models:
            target = ("--target", "repaid", "--out", tmp_path / "new.gw")
            succeed("learn", tmp_path / f"{name}.gw", data, *target)
            again = gw.load(tmp_path / f"{name}.gw")
            for city, pay, label in rows:
                again.learn_one({"city": city, "pay": pay}, label == "yes")
            assert gw.load(tmp_path / "new.gw").calibration().rows == again.calibration().rows


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """A file of three classes, with another model's probabilities, and the folder of its run."""
    folder = tmp_path_factory.mktemp("classes")
    generator = np.random.default_rng(5)
    shares = generator.dirichlet([2, 2, 2], 200).round(3)
    rows = [(*row, *share) for row, share in zip(travellers(), shares.tolist(), strict=True)]
    header = ("city", "pay", "mode", *(f"mine:{name}" for name in MODES))
    data = write_rows(folder / "data.csv", header, rows)
    drop = ("--drop", ", ".join(f'"mine:{name}"' for name in MODES))
    result = succeed("run", data, "--target", "mode", *drop, "--out", folder / "out")
    return folder, rows, result


def test_classes_have_a_probability_each(classes, tmp_path):
    folder, _, result = classes
    assert "the probability of each of 3 classes: 'bus', 'car', 'walk'" in result.stdout
    found = predictions_of(folder / "out" / "predictions.csv")
    names = [f"probability:{name}" for name in MODES]
    assert list(found[0]) == ["row", *names, "label", "groups"]
    losses = dict.fromkeys(["city=north", "city=south", "always_on"], 0.0)
    for row in found:
        assert math.fsum(float(row[name]) for name in names) == pytest.approx(1.0)
        for group in row["groups"].split("; "):
            losses[group] -= math.log(float(row[f"probability:{row['label']}"]))
    for group, row in regret_of(folder / "out").items():
        assert row["loss"] == pytest.approx(losses[group])
        assert row["regret"] <= row["certificate"]
    record = json.loads((folder / "out" / "regret.json").read_text("utf-8"))
    assert list(record["calibration"]["groupwise"]) == list(MODES)
    page = (folder / "out" / "report.html").read_text("utf-8")
    for text in ("most frequent", "share of rows of the class", "best chain of logistic models"):
        assert text in page
    snapshot = folder / "out" / "model.gw"
    data = write_rows(tmp_path / "new.csv", ("city", "pay"), [("north", 30)])
    succeed("predict", snapshot, data, "--out", tmp_path / "p.csv")
    (row,) = predictions_of(tmp_path / "p.csv")
    expected = gw.load(snapshot).predict_one({"city": "north", "pay": 30})
    assert {name: float(row[f"probability:{name}"]) for name in MODES} == expected
    assert "most frequent" in succeed("regret", snapshot).stdout


def test_compare_audits_the_probabilities_of_classes(classes, tmp_path):
    folder, rows, _ = classes
    result = succeed(
        *("compare", folder / "data.csv", "--target", "mode", "--prediction", "mine"),
        *("--out", tmp_path / "out"),
    )
    assert "Mean log loss of mine: " in result.stdout
    record = json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))
    ours = regret_of(folder / "out")
    for row in record["rows"]:
        city = row["group"].partition("=")[2]
        losses = [
            -math.log(one[3 + MODES.index(one[2])] / sum(one[3:]))
            for one in rows
            if city in ("", one[0])
        ]
        audited = row["predictions"]["mine"]
        assert audited["loss"] == pytest.approx(math.fsum(losses))
        assert audited["regret"] == pytest.approx(math.fsum(losses) - row["best_loss"])
        assert row["regret"] == ours[row["group"]]["regret"]
    assert set(record["calibration"]) == {"groupwise", "mine"}
    said = refused("compare", folder / "data.csv", "--target", "mode", "--prediction", "pay")
    assert "'pay' is one column, and 'mode' has 3 classes" in said


def test_compare_audits_probabilities(finished, tmp_path):
    _, out, _ = finished
    rows = [(*row, round(_sigma((row[1] - 40) / 20), 3), 0.5) for row in people()]
    rows[7] = (*rows[7][:3], 1.0 if rows[7][2] == "no" else 0.0, 0.5)  # sure, and wrong
    data = write_rows(tmp_path / "data.csv", (*HEADER, "mine", "coin"), rows)
    models = ("--prediction", "mine", "--prediction", "coin")
    result = succeed("compare", data, "--target", "repaid", *models, "--out", tmp_path / "out")
    assert "mine gave no more than 1e-15 to what came in one row." in result.stderr
    record = json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))
    ours = regret_of(out)
    for row in record["rows"]:
        assert row["regret"] == ours[row["group"]]["regret"]
        city = row["group"].partition("=")[2]
        inside = [one for one in rows if city in ("", one[0])]
        for place, name in ((3, "mine"), (4, "coin")):
            losses = [
                -math.log(max(one[place] if one[2] == "yes" else 1 - one[place], 1e-15))
                for one in inside
            ]
            audited = row["predictions"][name]
            assert audited["loss"] == pytest.approx(math.fsum(losses), rel=1e-4)
            assert audited["regret"] == pytest.approx(audited["loss"] - row["best_loss"])
            found = record["calibration"][name]["yes"]
            (line,) = [line for line in found if line["group"] == row["group"]]
            gap = np.mean([one[place] - (one[2] == "yes") for one in inside])
            assert line["gap"] == pytest.approx(gap)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    for text in ("Mean log loss of mine: ", "mine gave no more than 1e-15", "by chance", "coin"):
        assert text in page
    data = write_rows(tmp_path / "logits.csv", (*HEADER, "score"), [(*r, 3.5) for r in people(9)])
    said = refused("compare", data, "--target", "repaid", "--prediction", "score")
    assert "'score' holds 3.5, and probabilities are from 0 to 1" in said


def test_a_single_class_works_and_says_so(tmp_path):
    rows = [(*row[:2], "no") for row in people(60)]
    data = write_rows(tmp_path / "data.csv", HEADER, rows)
    result = succeed("run", data, "--target", "repaid", "--out", tmp_path / "out")
    assert "Every label is 'no'" in result.stderr
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Every label is 'no'" in html.unescape(page)
    assert "All labels are the same in everybody (always_on)" in page
    assert "(base rate alone: 0)" in page
    assert all(math.isfinite(row["loss"]) for row in regret_of(tmp_path / "out").values())
    later = write_rows(tmp_path / "later.csv", HEADER, people(10))
    succeed("learn", tmp_path / "out" / "model.gw", later)


def test_a_class_that_comes_once(tmp_path):
    rows = [*travellers(60), ("north", 30, "<i>swim</i>")]
    data = write_rows(tmp_path / "data.csv", ("city", "pay", "mode"), rows)
    result = succeed("run", data, "--target", "mode", "--out", tmp_path / "out")
    assert "The label is '<i>swim</i>' in row 61 alone" in result.stderr
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "<i>" not in page
    assert "&lt;i&gt;swim" in page


def test_names_of_classes_are_text_in_every_output(tmp_path):
    names = ("=1+1", 'say "hi",\n\x1b[31m')
    rows = [(city, pay, names[label == "yes"]) for city, pay, label in people(80)]
    data = write_rows(tmp_path / "data.csv", HEADER, rows)
    result = succeed("run", data, "--target", "repaid", "--out", tmp_path / "out")
    assert "\x1b" not in result.stdout
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "\x1b" not in page
    found = predictions_of(tmp_path / "out" / "predictions.csv")
    assert list(found[0])[1] == f"probability:{names[1]}"
    assert {row["label"] for row in found} == {f"'{names[0]}", names[1]}
    assert len(found) == 80


def test_what_goes_wrong_leaves_nothing(tmp_path):
    data = write_rows(tmp_path / "data.csv", HEADER, [("north", 20, "")] * 3)
    refused("run", data, "--target", "repaid", "--out", tmp_path / "out")
    data = write_rows(tmp_path / "data.csv", HEADER, people(20))
    for options, message in (
        (("--task", "probable"), "There is no task 'probable'"),
        (("--positive", "perhaps"), "--positive perhaps is to be one of two classes"),
        (("--classes", "yes"), "two classes or more"),
        (("--learner", "ridge"), "--learner ridge predicts numbers"),
    ):
        said = refused("run", data, "--target", "repaid", *options, "--out", tmp_path / "out")
        assert message in said
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv"}


def test_labels_in_parquet_and_json_lines(finished, tmp_path):
    _, out, _ = finished
    rows = people()
    frame = pd.DataFrame(rows, columns=list(HEADER))
    frame["repaid"] = frame.repaid == "yes"
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_json(tmp_path / "data.jsonl", orient="records", lines=True)
    expected = [row["probability:yes"] for row in predictions_of(out / "predictions.csv")]
    for name in ("data.parquet", "data.jsonl"):
        succeed("run", tmp_path / name, "--target", "repaid", "--out", tmp_path / "out")
        found = predictions_of(tmp_path / "out" / "predictions.csv")
        assert [row["probability:true"] for row in found] == expected


def test_labels_that_are_probabilities_themselves(tmp_path):
    rows = [(*row[:2], (i % 5) / 4) for i, row in enumerate(people(80))]
    data = write_rows(tmp_path / "data.csv", HEADER, rows)
    options = ("--target", "repaid", "--task", "probability", "--out", tmp_path / "out")
    assert "Labels are probabilities themselves" in succeed("run", data, *options).stdout
    found = predictions_of(tmp_path / "out" / "predictions.csv")
    losses = [
        -float(row["label"]) * math.log(float(row["probability:1"]))
        - (1 - float(row["label"])) * math.log(1 - float(row["probability:1"]))
        for row in found
    ]
    assert regret_of(tmp_path / "out")["always_on"]["loss"] == pytest.approx(math.fsum(losses))
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "The column repaid, of probabilities, was predicted" in page


def test_it_is_said_where_nothing_was_gained(tmp_path):
    draw = random.Random(0)
    rows = [(*(draw.random() for _ in range(12)), draw.choice(["no", "yes"])) for _ in range(120)]
    data = write_rows(tmp_path / "noise.csv", [*(f"x{i}" for i in range(12)), "won"], rows)
    said = succeed("run", data, "--target", "won", "--out", tmp_path / "out").stdout
    assert "no better than the base rate" in said
