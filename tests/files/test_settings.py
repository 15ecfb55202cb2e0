"""What is asked for: on the command line, in TOML, and there and back."""

import pytest

from groupwise.errors import ConfigurationError
from groupwise.files.plan import make_plan
from groupwise.files.scan import scan
from groupwise.files.settings import Request, as_range, read_config, request_from
from groupwise.files.source import opened
from groupwise.groups import by, cut
from tests.cli.commands import people_file

TOML = """
target = "pay"
range = [0, 10]
drop = ["name"]
learner = "forward"
penalty = 2.5
indicators = false
[features]
age = [18, 65]
city = "levels"
[[groups]]
by = "sex"
[[groups]]
cut = "age"
edges = [30]
"""


def test_a_file_of_settings(tmp_path):
    (tmp_path / "c.toml").write_text(TOML)
    found = read_config(tmp_path / "c.toml")
    assert found == Request(
        target="pay",
        range=(0.0, 10.0),
        drop=("name",),
        learner="forward",
        penalty=2.5,
        indicators=False,
        features={"age": (18.0, 65.0), "city": "levels"},
        groups=[by("sex"), cut("age", [30])],
    )
    assert read_config(None) == Request()


def test_the_command_line_comes_first(tmp_path):
    (tmp_path / "c.toml").write_text(TOML)
    found = request_from(
        tmp_path / "c.toml", target="age", range="1,2", drop='x, "y,z"', groups="sex", learner=None
    )
    assert (found.target, found.range, found.drop) == ("age", (1.0, 2.0), ("x", "y,z"))
    assert found.text == {"groups": "sex"}
    assert (found.learner, found.penalty) == ("forward", 2.5)


def test_a_plan_as_toml_asks_for_the_same_plan(tmp_path):
    with opened(str(people_file(tmp_path / "people.csv"))) as source:
        found = scan(source, "pay", ("age",))
    request = Request(target="pay", order=("age",)).with_options(
        groups="sex, age:30|50, city & sex"
    )
    made = make_plan(found, request)
    text = made.toml(["a note", "two\nlines"])
    assert text.startswith("# a note\n# two\\nlines\n")
    assert "[18.0, 64.0]" in text
    (tmp_path / "c.toml").write_text(text)
    again = make_plan(found, read_config(tmp_path / "c.toml"))
    kept = ("target", "task", "order", "groups", "features", "indicators", "learner", "kinds")
    assert [getattr(again, name) for name in kept] == [getattr(made, name) for name in kept]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("target = 3", "target holds 3. Give text"),
        ('indicators = "yes"', "indicators is true or false"),
        ("intercept = 1", "intercept is true or false"),
        ("range = [1, true]", "Give .low, high.\\.$"),
        ("drop = [1]", "drop is a list of column names"),
        ("features = 3", "features is a list of names or a table"),
        ('[features]\nage = "some"', 'or "levels"'),
        ('groups = "sex"', "Write .*groups.* tables"),
    ],
)
def test_refused(text, message, tmp_path):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        read_config(tmp_path / "c.toml")


def test_ranges():
    assert as_range(None) is None
    assert as_range(" -1, 2e3") == (-1.0, 2000.0)
    for text in ("1", "1,2,3", "a,b", ""):
        with pytest.raises(ConfigurationError, match="is not LOW,HIGH"):
            as_range(text)
