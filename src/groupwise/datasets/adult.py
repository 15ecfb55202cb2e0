"""Adult income: what 49,531 people earned, a real number, by age, education, sex and race.

The file is the reconstruction of the UCI Adult data that comes with folktables. Its terms
(those of IPUMS) forbid passing it on, so it is downloaded or given, and never stored here.
"""

from collections.abc import Mapping

from groupwise.datasets._files import DataFile, PathLike
from groupwise.datasets._table import Indicators, Layout, Numbers
from groupwise.datasets.dataset import Dataset

FILE = DataFile(
    name="adult_reconstruction.csv",
    address="https://raw.githubusercontent.com/socialfoundations/folktables/"
    "main/adult_reconstruction.csv",
    sha256="4895fd481e7ae6e2ca423e6213454b39f0f7ec0efcd741ad2f6c667554f0eb51",
)
ROWS = 49_531
RACES = ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")


def _educations(raw: Mapping[str, Numbers]) -> Indicators:
    schooled = raw["education-num"] > 9  # that of a high school graduate
    return {"HighSchool&less": ~schooled, "College&more": schooled}


LAYOUT = Layout(
    name="adult",
    file=FILE,
    rows=ROWS,
    numeric=("hours-per-week", "age", "capital-gain", "capital-loss", "education-num"),
    categorical=(
        "workclass",
        "marital-status",
        "relationship",
        "native-country",
        "occupation",
        "race",
        "sex",
    ),
    label="income",
    levels={"sex": {"Male": "Male", "Female": "Female"}, "race": {race: race for race in RACES}},
    indicators=_educations,
    dropped=("education",),  # says in words what education-num says in numbers
    synonyms={"gender": "sex"},
)
adult_from_table = LAYOUT.dataset


def adult(path: PathLike | None = None, *, data_dir: PathLike | None = None) -> Dataset:
    """The adult income data as in the paper: 12 groups and always_on.

    The file is looked for at ``path``, in ``data_dir``, in the folder that the environment variable
    GROUPWISE_DATA names and in the user's cache; failing all, it is downloaded to the cache.
    A file with other columns or another number of rows is refused. The column of sexes may be
    called ``sex``, as in older editions of the file, or ``gender``.
    """
    return LAYOUT.load(path, data_dir)
