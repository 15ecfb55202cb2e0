"""Medical costs: yearly charges of 1,338 people by age, body mass index, smoking and sex."""

from __future__ import annotations

import numpy as np

from ..groups import ALWAYS_ON
from . import _table
from ._files import DataFile, PathLike, locate
from .dataset import Dataset

FILE = DataFile(
    name="insurance.csv",
    address="https://raw.githubusercontent.com/stedy/Machine-Learning-with-R-datasets/"
    "ff933238d9c30da179b7e3ad4b6ca938d67efc53/insurance.csv",
    sha256="505c1cbc2e63d0363bac59501563df2530aadf4cdb9cfee226f4ef32f5468281",
)
ROWS = 1_338
NUMERIC = ("age", "bmi", "children")
CATEGORICAL = ("sex", "smoker", "region")
LABEL = "charges"


def medical(path: PathLike | None = None, *, data_dir: PathLike | None = None) -> Dataset:
    """The medical cost data as in the paper: 18 features, 11 groups and always_on.

    The file is looked for at `path`, in `data_dir`, in the folder that the environment variable
    GROUPWISE_DATA names and in the user's cache; failing all, it is downloaded to the cache.
    A file with other columns or another number of rows is refused.
    """
    found = locate(FILE, path, data_dir)
    table = _table.read_csv(found)
    _table.require_columns(table, (*NUMERIC, *CATEGORICAL, LABEL), str(found))
    _table.require_rows(table, ROWS, str(found))
    return medical_from_table(table)


def medical_from_table(table: _table.Table) -> Dataset:
    """The paper's preprocessing of any table with the file's columns, of any length."""
    _table.require_columns(table, (*NUMERIC, *CATEGORICAL, LABEL), "The medical table")
    _table.require_levels(table, "sex", ("male", "female"))
    _table.require_levels(table, "smoker", ("yes", "no"))
    raw = {column: _table.numbers(table, column) for column in (*NUMERIC, LABEL)}
    levels = {k: v for column in CATEGORICAL for k, v in _table.one_hot(table, column).items()}
    age, bmi = raw["age"], raw["bmi"]
    indicators = {
        **_table.age_groups(age),
        "underweight": bmi < 18.5,
        "healthyweight": (bmi >= 18.5) & (bmi < 25),
        "overweight": (bmi >= 25) & (bmi < 30),
        "obese": bmi >= 30,
    }
    nobody = np.zeros(len(age), dtype=bool)
    groups = {
        **indicators,
        "smoker": levels.get("smoker=yes", nobody),
        "non-smoker": levels.get("smoker=no", nobody),
        "male": levels.get("sex=male", nobody),
        "female": levels.get("sex=female", nobody),
        ALWAYS_ON: ~nobody,
    }
    features = {**{c: _table.scaled(raw[c]) for c in NUMERIC}, **levels, **indicators}
    return Dataset(
        name="medical",
        features=_table.stacked(features.values(), np.float64),
        feature_names=tuple(features),
        label=_table.scaled(raw[LABEL]),
        label_name=LABEL,
        membership=_table.stacked(groups.values(), np.uint8),
        group_names=tuple(groups),
        sort_key=age,
    )
