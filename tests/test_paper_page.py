"""The page that maps the paper to the code: complete, and true to both."""

import re
from pathlib import Path

import pytest

from groupwise import bounds
from groupwise.paper.beyond import STUDIES
from groupwise.paper.published import EXPERIMENTS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", PAGE)


@pytest.fixture(scope="module")
def source(shared_data):
    """The paper's own source, which is no part of the repository."""
    found = sorted((shared_data.parent / "paper").glob("*.tex"))
    if not found:
        pytest.skip(f"no paper in {shared_data.parent / 'paper'}")
    return found[0].read_text(encoding="utf-8")


def test_every_label_of_the_paper_is_on_the_page(source):
    labels = set(re.findall(r"\\label\{([^}]+)\}", source))
    assert len(labels) > 70
    assert sorted(labels - set(CODE)) == []


def test_the_page_has_no_label_that_the_paper_has_not(source):
    labels = set(re.findall(r"\\label\{([^}]+)\}", source))
    shaped = re.compile(r"(fig|Tab|sec|Sec|cor|corollary|thm|alg|app|Appendix)[:_-].*")
    assert [name for name in CODE if shaped.fullmatch(name) and name not in labels] == []


def test_every_theorem_and_corollary_has_a_number():
    named = {name.removeprefix("bounds.") for name in CODE if name.startswith("bounds.")}
    assert named <= set(bounds.__all__)
    alone = {"contextual_ftpl", "ftpl", "noise_width", "rounds_until"}
    assert set(bounds.__all__) - alone <= named


def test_files_tests_and_commands_are_there():
    for name in CODE:
        if re.fullmatch(r"[\w/]+(\.py|/)", name):
            places = (ROOT / "src/groupwise" / name, ROOT / "tests" / name, ROOT / name)
            assert any(place.exists() for place in places), name
    commands = {name.split()[0] for name in CODE if " --order " in name}
    assert commands == set(EXPERIMENTS)
    for study in STUDIES:
        named = {study, f"groupwise reproduce {study}"} & {*CODE}
        assert named or study == "ablation", study


def test_figures_have_the_names_that_files_have():
    kinds = ("regret", "fraction", "figure-1")
    named = [name for name in CODE if re.fullmatch(r"[\w-]+-(shuffled|sorted)-[\w-]+", name)]
    assert len(named) > 14
    for name in named:
        ((experiment, order, kind),) = re.findall(r"^(.+)-(shuffled|sorted)-(.+)$", name)
        assert experiment in EXPERIMENTS
        assert kind in kinds
        families = EXPERIMENTS[experiment]
        assert kind != "fraction" or families.families
        assert kind != "figure-1" or (families.headline and order == "shuffled")
