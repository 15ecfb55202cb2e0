"""Adult income on generated rows with the real file's columns and levels."""

import csv
import random

import numpy as np
import pytest

from groupwise.datasets import adult, published
from groupwise.datasets.adult import ROWS, adult_from_table
from groupwise.errors import DatasetError

# The columns that the file is documented to have; `gender` is `sex` in older editions.
HEADER = [
    *("hours-per-week", "age", "capital-gain", "capital-loss", "workclass", "education-num"),
    *("education", "marital-status", "relationship", "race", "gender", "native-country"),
    *("income", "occupation"),
]
LEVELS = {
    "workclass": ["?", "Private", "Self-emp-not-inc", "State-gov", "Without-pay"],
    "education": ["HS-grad", "Bachelors", "11th"],
    "marital-status": ["Never-married", "Married-civ-spouse", "Divorced", "Widowed"],
    "relationship": ["Husband", "Wife", "Own-child", "Not-in-family", "Unmarried"],
    "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
    "gender": ["Male", "Female"],
    "native-country": ["?", "United-States", "Mexico", "Trinadad&Tobago"],
    "occupation": ["?", "Sales", "Craft-repair", "Armed-Forces"],
}
RANGES = {
    "hours-per-week": (1, 99),
    "age": (17, 90),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "education-num": (1, 16),
    "income": (100, 99_999),
}


def generated(rows, sex="gender", seed=0):
    draw = random.Random(seed)
    table = {
        column: [str(draw.randint(*RANGES[column])) for _ in range(rows)]
        if column in RANGES
        else draw.choices(LEVELS[column], k=rows)
        for column in HEADER
    }
    return {(sex if name == "gender" else name): cells for name, cells in table.items()}


def write(table, path):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


@pytest.fixture
def four_rows():
    """Ages and schooling on both sides of every boundary."""
    return {
        "hours-per-week": ["40", "20", "60", "30"],
        "age": ["35", "36", "50", "51"],
        "capital-gain": ["0", "1000", "0", "4000"],
        "capital-loss": ["0", "0", "0", "0"],
        "workclass": ["Private", "?", "Private", "State-gov"],
        "education-num": ["9", "10", "1", "16"],
        "education": ["HS-grad", "Some-college", "Preschool", "Doctorate"],
        "marital-status": ["Divorced", "Divorced", "Widowed", "Widowed"],
        "relationship": ["Husband", "Wife", "Husband", "Wife"],
        "race": ["White", "Black", "Other", "Asian-Pac-Islander"],
        "gender": ["Male", "Female", "Female", "Male"],
        "native-country": ["?", "?", "Mexico", "Mexico"],
        "income": ["10000", "20000", "15000", "50000"],
        "occupation": ["Sales", "Sales", "Sales", "?"],
    }


def test_preprocessing_by_hand(four_rows):
    data = adult_from_table(four_rows)
    columns = dict(zip(data.feature_names, data.features.T.tolist(), strict=True))
    assert list(columns) == [
        *("hours-per-week", "age", "capital-gain", "capital-loss", "education-num"),
        *("workclass=?", "workclass=Private", "workclass=State-gov"),
        *("marital-status=Divorced", "marital-status=Widowed"),
        *("relationship=Husband", "relationship=Wife"),
        *("native-country=?", "native-country=Mexico", "occupation=?", "occupation=Sales"),
        *("race=Asian-Pac-Islander", "race=Black", "race=Other", "race=White"),
        *("sex=Female", "sex=Male"),
        *("young", "middle", "old", "HighSchool&less", "College&more"),
    ]
    assert columns["hours-per-week"] == [0.5, 0, 1, 0.25]
    assert columns["age"] == [0, 1 / 16, 15 / 16, 1]
    assert columns["capital-gain"] == [0, 0.25, 0, 1]
    assert columns["capital-loss"] == [0, 0, 0, 0]
    assert columns["education-num"] == [8 / 15, 9 / 15, 0, 1]
    assert columns["workclass=?"] == [0, 1, 0, 0]
    assert columns["native-country=?"] == [1, 1, 0, 0]
    assert columns["occupation=?"] == [0, 0, 0, 1]
    assert columns["sex=Male"] == [1, 0, 0, 1]
    assert data.label.tolist() == [0, 0.25, 0.125, 1]
    assert data.label_name == "income"
    assert data.sort_key.tolist() == [35, 36, 50, 51]

    groups = dict(zip(data.group_names, data.membership.T.tolist(), strict=True))
    assert groups == {
        "young": [1, 0, 0, 0],
        "middle": [0, 1, 1, 0],
        "old": [0, 0, 0, 1],
        "HighSchool&less": [1, 0, 1, 0],
        "College&more": [0, 1, 0, 1],
        "Male": [1, 0, 0, 1],
        "Female": [0, 1, 1, 0],
        "White": [1, 0, 0, 0],
        "Asian-Pac-Islander": [0, 0, 0, 1],
        "Amer-Indian-Eskimo": [0, 0, 0, 0],
        "Other": [0, 0, 1, 0],
        "Black": [0, 1, 0, 0],
        "always_on": [1, 1, 1, 1],
    }


def test_group_names_are_the_published_ones():
    data = adult_from_table(generated(200))
    for order in ("shuffled", "sorted"):
        assert data.group_names == tuple(row.group for row in published()["adult", order])


def test_sizes_and_dimension_of_a_generated_table():
    table = generated(3_000)
    data = adult_from_table(table)
    levels = sum(len(set(table[column])) for column in LEVELS if column != "education")
    assert data.features.shape == (3_000, 5 + levels + 5)
    sizes = data.group_sizes
    assert sizes["Male"] == table["gender"].count("Male")
    assert sizes["Amer-Indian-Eskimo"] == table["race"].count("Amer-Indian-Eskimo")
    assert sizes["young"] == sum(int(age) <= 35 for age in table["age"])
    assert sizes["HighSchool&less"] == sum(int(years) <= 9 for years in table["education-num"])
    assert sizes["young"] + sizes["middle"] + sizes["old"] == sizes["always_on"] == 3_000


def test_education_in_words_is_not_a_feature():
    assert not [n for n in adult_from_table(generated(50)).feature_names if "HS-grad" in n]


@pytest.mark.slow
@pytest.mark.parametrize("sex", ["gender", "sex"])
def test_a_file_of_the_right_size_is_read_in_both_spellings(tmp_path, sex):
    table = generated(ROWS, sex=sex)
    data = adult(write(table, tmp_path / "any_name.csv"))
    expected = adult_from_table(generated(ROWS))
    assert data.rows == 49_531
    assert data.feature_names == expected.feature_names
    assert np.array_equal(data.features, expected.features)
    assert np.array_equal(data.membership, expected.membership)


def test_data_frames_of_columns_are_tables_too(four_rows):
    pandas = pytest.importorskip("pandas")
    data = adult_from_table(dict(pandas.DataFrame(four_rows)))
    assert np.array_equal(data.features, adult_from_table(four_rows).features)


def test_both_spellings_at_once_are_refused(four_rows):
    with pytest.raises(DatasetError, match="unexpected gender"):
        adult_from_table(four_rows | {"sex": four_rows["gender"]})


@pytest.mark.parametrize(("column", "level"), [("race", "Martian"), ("gender", "?")])
def test_a_level_without_a_group_is_named(four_rows, column, level):
    four_rows[column][1] = level
    with pytest.raises(DatasetError) as error:
        adult_from_table(four_rows)
    assert repr(level) in str(error.value)


def test_a_binary_income_is_refused(four_rows):
    # The UCI edition has the same columns but for one, and income as a class.
    four_rows["income"] = ["<=50K", ">50K", "<=50K", ">50K"]
    with pytest.raises(DatasetError, match="Column income, row 1"):
        adult_from_table(four_rows)
