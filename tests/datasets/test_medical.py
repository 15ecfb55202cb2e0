"""Medical costs: the real file where there is one, and a few rows computed by hand."""

import numpy as np
import pytest

from groupwise.datasets import medical, published
from groupwise.datasets.medical import medical_from_table
from groupwise.errors import DatasetError


@pytest.fixture
def table():
    """Ages and body mass indices on both sides of every boundary."""
    return {
        "age": ["35", "36", "50", "51", "20"],
        "sex": ["male", "female", "female", "male", "female"],
        "bmi": ["18.4", "18.5", "25", "30", "29.9"],
        "children": ["0", "1", "2", "4", "0"],
        "smoker": ["yes", "no", "no", "no", "yes"],
        "region": ["southwest", "northwest", "northeast", "southeast", "southeast"],
        "charges": ["1000", "2000", "3000", "5000", "1500"],
    }


def test_the_file_as_published(insurance):
    data = medical(insurance)
    assert data.features.shape == (1_338, 18)
    for order in ("shuffled", "sorted"):
        rows = published()["medical", order]
        assert data.group_sizes == {row.group: row.size for row in rows}
        assert data.group_names == tuple(row.group for row in rows)
    assert (data.label.min(), data.label.max()) == (0.0, 1.0)


def test_the_files_first_row_by_hand(insurance):
    # 19,female,27.9,0,yes,southwest,16884.924; the file's ages are 18 to 64, body mass
    # indices 15.96 to 53.13, children 0 to 5, charges 1121.8739 to 63770.42801.
    data = medical(insurance)
    expected = dict.fromkeys(data.feature_names, 0.0) | {
        "age": 1 / 46,
        "bmi": 11.94 / 37.17,
        "sex=female": 1.0,
        "smoker=yes": 1.0,
        "region=southwest": 1.0,
        "young": 1.0,
        "overweight": 1.0,
    }
    assert data.features[0] == pytest.approx(np.array(list(expected.values())), abs=1e-12)
    assert data.label[0] == pytest.approx((16884.924 - 1121.8739) / (63770.42801 - 1121.8739))
    assert data.sort_key[0] == 19
    inside = {name for name, m in zip(data.group_names, data.membership[0], strict=True) if m}
    assert inside == {"young", "overweight", "smoker", "female", "always_on"}


def test_preprocessing_by_hand(table):
    data = medical_from_table(table)
    columns = dict(zip(data.feature_names, data.features.T.tolist(), strict=True))
    assert list(columns) == [
        *("age", "bmi", "children", "sex=female", "sex=male", "smoker=no", "smoker=yes"),
        *("region=northeast", "region=northwest", "region=southeast", "region=southwest"),
        *("young", "middle", "old", "underweight", "healthyweight", "overweight", "obese"),
    ]
    assert columns["age"] == pytest.approx([15 / 31, 16 / 31, 30 / 31, 1, 0])
    assert columns["children"] == [0, 0.25, 0.5, 1, 0]
    assert columns["region=southeast"] == [0, 0, 0, 1, 1]
    assert columns["young"] == [1, 0, 0, 0, 1]
    assert columns["middle"] == [0, 1, 1, 0, 0]
    assert columns["old"] == [0, 0, 0, 1, 0]
    assert columns["underweight"] == [1, 0, 0, 0, 0]
    assert columns["healthyweight"] == [0, 1, 0, 0, 0]
    assert columns["overweight"] == [0, 0, 1, 0, 1]
    assert columns["obese"] == [0, 0, 0, 1, 0]
    assert data.label.tolist() == [0, 0.25, 0.5, 1, 0.125]
    assert data.sort_key.tolist() == [35, 36, 50, 51, 20]

    groups = dict(zip(data.group_names, data.membership.T.tolist(), strict=True))
    assert groups["smoker"] == [1, 0, 0, 0, 1]
    assert groups["non-smoker"] == [0, 1, 1, 1, 0]
    assert groups["male"] == [1, 0, 0, 1, 0]
    assert groups["female"] == [0, 1, 1, 0, 1]
    assert groups["always_on"] == [1, 1, 1, 1, 1]


def test_a_constant_column_is_zero(table):
    data = medical_from_table(table | {"children": ["3"] * 5})
    assert data.features[:, data.feature_names.index("children")].tolist() == [0.0] * 5


@pytest.mark.parametrize("cell", ["", "many", "nan", "inf"])
def test_a_cell_that_is_no_number_is_named(table, cell):
    table["bmi"][2] = cell
    with pytest.raises(DatasetError, match=f"Column bmi, row 3: '{cell}'"):
        medical_from_table(table)


def test_a_level_without_a_group_is_named(table):
    table["smoker"][1] = "sometimes"
    with pytest.raises(DatasetError, match=r"smoker.*'sometimes'"):
        medical_from_table(table)
