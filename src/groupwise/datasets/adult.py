"""Adult income: what 49,531 people earned, a real number, by age, education, sex and race.

The file is the reconstruction of the UCI Adult data that comes with folktables. Its terms
(those of IPUMS) forbid passing it on, so it is downloaded or given, and never stored here.
"""

from __future__ import annotations

import numpy as np

from ..groups import ALWAYS_ON
from . import _table
from ._files import DataFile, PathLike, locate
from .dataset import Dataset

FILE = DataFile(
    name="adult_reconstruction.csv",
    address="https://raw.githubusercontent.com/socialfoundations/folktables/"
    "main/adult_reconstruction.csv",
    sha256="4895fd481e7ae6e2ca423e6213454b39f0f7ec0efcd741ad2f6c667554f0eb51",
)
ROWS = 49_531
NUMERIC = ("hours-per-week", "age", "capital-gain", "capital-loss", "education-num")
CATEGORICAL = (
    "workclass",
    "marital-status",
    "relationship",
    "native-country",
    "occupation",
    "race",
    "sex",
)
DROPPED = "education"  # says in words what education-num says in numbers
LABEL = "income"
COLUMNS = (*NUMERIC, *CATEGORICAL, DROPPED, LABEL)
SEXES = ("Male", "Female")
RACES = ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")
HIGH_SCHOOL = 9  # the education-num of a high school graduate


def adult(path: PathLike | None = None, *, data_dir: PathLike | None = None) -> Dataset:
    """The adult income data as in the paper: 12 groups and always_on.

    The file is looked for at `path`, in `data_dir`, in the folder that the environment variable
    GROUPWISE_DATA names and in the user's cache; failing all, it is downloaded to the cache.
    A file with other columns or another number of rows is refused. The column of sexes may be
    called `sex`, as in older editions of the file, or `gender`.
    """
    found = locate(FILE, path, data_dir)
    table = _with_sex(_table.read_csv(found))
    _table.require_columns(table, COLUMNS, str(found))
    _table.require_rows(table, ROWS, str(found))
    return adult_from_table(table)


def adult_from_table(table: _table.Table) -> Dataset:
    """The paper's preprocessing of any table with the file's columns, of any length."""
    table = _with_sex(table)
    _table.require_columns(table, COLUMNS, "The adult table")
    _table.require_levels(table, "sex", SEXES)
    _table.require_levels(table, "race", RACES)
    raw = {column: _table.numbers(table, column) for column in (*NUMERIC, LABEL)}
    levels = {k: v for column in CATEGORICAL for k, v in _table.one_hot(table, column).items()}
    age, education = raw["age"], raw["education-num"]
    indicators = {
        **_table.age_groups(age),
        "HighSchool&less": education <= HIGH_SCHOOL,
        "College&more": education > HIGH_SCHOOL,
    }
    nobody = np.zeros(len(age), dtype=bool)
    groups = {
        **indicators,
        **{sex: levels.get(f"sex={sex}", nobody) for sex in SEXES},
        **{race: levels.get(f"race={race}", nobody) for race in RACES},
        ALWAYS_ON: ~nobody,
    }
    features = {**{c: _table.scaled(raw[c]) for c in NUMERIC}, **levels, **indicators}
    return Dataset(
        name="adult",
        features=_table.stacked(features.values(), np.float64),
        feature_names=tuple(features),
        label=_table.scaled(raw[LABEL]),
        label_name=LABEL,
        membership=_table.stacked(groups.values(), np.uint8),
        group_names=tuple(groups),
        sort_key=age,
    )


def _with_sex(table: _table.Table) -> _table.Table:
    """The table with `gender` called `sex`, as the paper's code and older editions have it."""
    if "gender" not in table or "sex" in table:
        return table
    return {("sex" if name == "gender" else name): table[name] for name in table}
