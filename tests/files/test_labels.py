"""What a label is, found out from its column, or said."""

from typing import Any

import pytest

from groupwise.errors import ConfigurationError, DataError
from groupwise.files.labels import described
from groupwise.files.plan import make_plan
from groupwise.files.scan import scan
from groupwise.files.settings import Request
from groupwise.files.source import opened
from groupwise.learners import Logistic
from groupwise.losses import Log, Square
from tests.cli.commands import write_rows


def plan(tmp_path, labels, **request):
    """The plan for a file with such labels."""
    rows = [("ab"[i % 2], i * 7 % 31, label) for i, label in enumerate(labels)]
    data = write_rows(tmp_path / "data.csv", ("kind", "x", "y"), rows)
    with opened(str(data)) as source:
        found = scan(source, "y")
        return found, make_plan(found, Request(target="y", **request))


def task(tmp_path, labels, **request):
    return plan(tmp_path, labels, **request)[1].task


FOUND: dict[str, Any] = {
    "0 and 1": ([0, 1], Log()),
    "0 and 1 as they come from other programs": (["0.0", "1.0", "1", "00"], Log()),
    "two texts": (["yes", "no"], Log(classes=["no", "yes"])),
    "two texts, one with a capital": (["Yes", "no"], Log(classes=["no", "Yes"])),
    "true and false": (["true", "false"], Log(classes=["false", "true"])),
    "True and False": (["True", "False"], Log(classes=["false", "true"])),
    "signs": ([">50K", "<=50K"], Log(classes=["<=50K", ">50K"])),
    "three texts": (["red", "Green", "blue"], Log(classes=["blue", "Green", "red"])),
    "twenty texts": ([f"t{i:02}" for i in range(20)], Log(classes=[f"t{i:02}" for i in range(20)])),
    "few numbers": ([0, 1, 2], Square(0.0, 2.0)),
    "two numbers": ([1, 2], Square(1.0, 2.0)),
    "shares": ([0.1, 0.9], Square(0.1, 0.9)),
    "one class of two that are known": (["no", "no"], Log(classes=["no", "yes"])),
    "one class of two, with a capital": (["YES", "YES"], Log(classes=["NO", "YES"])),
    "one of true and false": (["True", "True"], Log(classes=["false", "true"])),
    "nothing but 0": ([0, 0], Log()),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name, tmp_path):
    labels, loss = FOUND[name]
    assert task(tmp_path, labels * 12).loss == loss


SAID: dict[str, Any] = {
    "0 and 1 as a number": ([0, 1], {"task": "number"}, Square(0.0, 1.0)),
    "0 and 1 with a range": ([0, 1], {"range": (0.0, 1.0)}, Square(0.0, 1.0)),
    "0 and 1, said": ([0, 1], {"task": "probability"}, Log()),
    "0 and 1 as classes": ([0, 1], {"task": "classes"}, Log()),
    "numbers as classes": ([3, 1, 2.5], {"task": "classes"}, Log(classes=[1, 2.5, 3])),
    "two numbers as yes and no": ([1, 2], {"task": "probability"}, Log(classes=[1, 2])),
    "shares as probabilities": ([0.1, 0.9, 1], {"task": "probability"}, Log()),
    "the other one": (["yes", "no"], {"positive": "no"}, Log(classes=["yes", "no"])),
    "the other number": ([0, 1], {"positive": "0"}, Log(classes=[1, 0])),
    "the other of two numbers": ([-1, 1], {"positive": "-1.0"}, Log(classes=[1, -1])),
    "a class yet to come": (["a", "b"], {"classes": ("b", "c", "a")}, Log(classes=["b", "c", "a"])),
    "a number yet to come": ([5, 7], {"classes": ("7", "9", "5")}, Log(classes=[7, 9, 5])),
    "one class, and another": (["a", "a"], {"classes": ("b", "a")}, Log(classes=["b", "a"])),
    "more than twenty": (
        [f"t{i:02}" for i in range(22)],
        {"task": "classes"},
        Log(classes=[f"t{i:02}" for i in range(22)]),
    ),
    "numbers and text": (["1", "2", "3+"], {"task": "classes"}, Log(classes=["1", "2", "3+"])),
    "a class called NA": (["NA", "EU"], {"classes": ("EU", "NA")}, Log(classes=["EU", "NA"])),
}


@pytest.mark.parametrize("name", SAID)
def test_said(name, tmp_path):
    labels, request, loss = SAID[name]
    found = task(tmp_path, labels * 12, **request)
    assert found.loss == loss
    assert [type(one) for one in found.classes] == [type(one) for one in loss.classes or (0, 1)]


REFUSED: dict[str, Any] = {
    "numbers and text": ([1, 2, "hot"], {}, "'hot' in row 3, which is no number, and numbers"),
    "too many texts": (
        [f"t{i}" for i in range(21)],
        {},
        r"21 different texts, such as 't0' in row 1.* --task classes",
    ),
    "three texts for yes and no": (
        ["a", "b", "c"],
        {"task": "probability"},
        r"holds 3 different values \('a', 'b', 'c'\), and --task probability is for two",
    ),
    "three numbers for yes and no": (
        [0, 1, 2],
        {"task": "probability"},
        r"holds 3 different values .* Say --task classes",
    ),
    "one text": (["red"], {}, r"holds one value only \('red'\)\. Name the classes"),
    "one number as a class": ([7], {"task": "classes"}, r"holds one value only \('7'\)"),
    "text as a number": (["a", "b"], {"task": "number"}, "holds 'a' in row 1, which is no number"),
    "a class that is not declared": (
        ["a", "b", "c"],
        {"classes": ("a", "b")},
        "holds 'c' in row 3, which is none of the classes 'a', 'b'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    labels, request, message = REFUSED[name]
    with pytest.raises(DataError, match=message):
        task(tmp_path, labels, **request)


CONTRADICTIONS: dict[str, Any] = {
    "a range of yes and no": ({"task": "classes", "range": (0.0, 1.0)}, "--range is for numbers"),
    "classes of a number": ({"task": "number", "classes": ("0", "1")}, "--classes is for classes"),
    "classes in a range": ({"range": (0.0, 1.0), "positive": "1"}, "--positive is for classes"),
    "a positive that is none": ({"positive": "2"}, "--positive 2 is to be one of two classes"),
    "names for numbers": ({"classes": ("no", "yes")}, "holds numbers, and --classes has other"),
    "a class twice": ({"classes": ("0", "1", "1.0")}, "each of them once"),
    "a learner of numbers": ({"learner": "forward"}, "--learner forward predicts numbers"),
    "an aggregator of bounded losses": ({"aggregator": "adanormalhedge"}, "the log loss of"),
    "an aggregator of square loss": ({"aggregator": "prod"}, "probabilities have log loss"),
    "a bound for numbers": (
        {"task": "number", "bound": 5.0},
        "bound is for probabilities, and 'y' is a",
    ),
    "no number is logistic": (
        {"task": "number", "learner": "logistic"},
        "--learner logistic predicts probabilities, and 'y' is a number",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions(name, tmp_path):
    request, message = CONTRADICTIONS[name]
    with pytest.raises(ConfigurationError, match=message):
        plan(tmp_path, [0, 1] * 9, **request)[1].model()


def test_more_values_than_classes_can_be(tmp_path):
    labels = [f"t{i}" for i in range(1_001)]
    with pytest.raises(DataError, match="1,001 different values, and classes are at most 1,000"):
        task(tmp_path, labels, task="classes")
    with pytest.raises(DataError, match="1,001 different values"):
        task(tmp_path, range(1_001), task="classes")


def test_what_to_know_of_the_classes(tmp_path):
    def warned(labels, **request):
        return " ".join(plan(tmp_path, labels, **request)[1].warnings)

    assert warned(["yes", "no"] * 9) == ""
    assert "'NA' among the labels stands for a missing one" in warned(["a", "b", "NA"] * 9)
    assert warned(["a", "b", "NA"] * 9, classes=("a", "b", "NA")) == ""
    assert "The label is 'yess' in row 19 alone" in warned(["yes", "no"] * 9 + ["yess"])
    assert "'no' and 'No.' differ in capitals" in warned(["yes", "no", "No."] * 9)
    assert "Every label is 'no'" in warned(["no"] * 9)
    assert "Every label is '0'" in warned([0] * 9)
    assert "two numbers only, 1 and 2, and is predicted as a number" in warned([1, 2] * 9)
    assert warned([1, 2] * 9, task="number") == ""
    assert warned([0.5, 0.25, 0, 1], task="probability") == ""


def test_what_is_predicted_in_a_sentence(tmp_path):
    def said(labels, **request):
        found, made = plan(tmp_path, labels, **request)
        return described(made.task, found.columns["y"])

    assert "the probability that y is 'yes', not 'no'. --positive" in said(["yes", "no"] * 9)
    assert "is '1', not '0'" in said([0, 1] * 9)
    assert "each of 3 classes: 'a', 'b', 'c'" in said(["a", "b", "c"] * 9)
    assert "probabilities themselves" in said([0.5, 0.25, 0, 1], task="probability")


def test_features_that_tell_a_text_apart_are_suspicious(tmp_path):
    rows = [("ab"[i % 2], i % 2 + i % 7 / 50, "yes" if i % 2 else "no") for i in range(60)]
    data = write_rows(tmp_path / "data.csv", ("kind", "x", "y"), rows)
    with opened(str(data)) as source:
        made = make_plan(scan(source, "y"), Request(target="y"))
    assert any("'x' correlates with the label 'y' at" in text for text in made.warnings)


def test_what_was_looked_up_is_said(tmp_path):
    chosen = {"groups": [], "features": {"x": (0.0, 30.0)}}

    def ahead(labels, **request):
        return plan(tmp_path, labels * 9, **request)[1].looked_ahead

    assert ahead(["yes", "no"], **chosen) == ("the classes of the label",)
    assert ahead([0, 1], **chosen) == ("the classes of the label",)
    assert ahead([0, 1], task="probability", **chosen) == ()
    assert ahead(["yes", "no"], classes=("no", "yes"), **chosen) == ()


@pytest.mark.parametrize("labels", [["yes", "no"], [0, 1], [1, 2], ["a", "b", "c"], [0.5, 1]])
def test_a_plan_as_toml_asks_for_the_same(tmp_path, labels):
    from groupwise.files.settings import read_config

    task = None if isinstance(labels[0], str) else "probability"
    found, made = plan(tmp_path, labels * 9, task=task, bound=5.0)
    (tmp_path / "c.toml").write_text(made.toml())
    again = make_plan(found, read_config(tmp_path / "c.toml"))
    assert again.task == made.task
    assert (again.learner, again.parameters) == ("portfolio", {"bound": 5.0})
    assert again.aggregator == "specialists"
    assert again.looked_ahead == ()
    assert again.model().learners == made.model().learners
    assert [one.bound for one in again.model().learners] == [5.0, 5.0, 5.0, 4.0]


def test_one_logistic_model(tmp_path):
    """By name, with the penalty for columns that are scaled; or with one of one's own."""
    assert plan(tmp_path, ["yes", "no"] * 9, learner="logistic")[1].model().learners == (
        Logistic(penalty=0.1),
    )
    _, made = plan(tmp_path, ["yes", "no"] * 9, learner="logistic", penalty=3.0, bound=6.0)
    assert made.model().learners == (Logistic(penalty=3.0, bound=6.0),)
