"""Medical costs: yearly charges of 1,338 people by age, body mass index, smoking and sex."""

from collections.abc import Mapping

from groupwise.datasets._files import DataFile, PathLike
from groupwise.datasets._table import Indicators, Layout, Numbers
from groupwise.datasets.dataset import Dataset

FILE = DataFile(
    name="insurance.csv",
    address="https://raw.githubusercontent.com/stedy/Machine-Learning-with-R-datasets/"
    "ff933238d9c30da179b7e3ad4b6ca938d67efc53/insurance.csv",
    sha256="505c1cbc2e63d0363bac59501563df2530aadf4cdb9cfee226f4ef32f5468281",
)


def _weights(raw: Mapping[str, Numbers]) -> Indicators:
    bmi = raw["bmi"]
    return {
        "underweight": bmi < 18.5,
        "healthyweight": (bmi >= 18.5) & (bmi < 25),
        "overweight": (bmi >= 25) & (bmi < 30),
        "obese": bmi >= 30,
    }


LAYOUT = Layout(
    name="medical",
    file=FILE,
    rows=1_338,
    numeric=("age", "bmi", "children"),
    categorical=("sex", "smoker", "region"),
    label="charges",
    levels={
        "smoker": {"yes": "smoker", "no": "non-smoker"},
        "sex": {"male": "male", "female": "female"},
    },
    indicators=_weights,
)
medical_from_table = LAYOUT.dataset


def medical(path: PathLike | None = None, *, data_dir: PathLike | None = None) -> Dataset:
    """The medical cost data as in the paper: 18 features, 11 groups and always_on.

    The file is looked for at ``path``, in ``data_dir``, in the folder that the environment variable
    GROUPWISE_DATA names and in the user's cache; failing all, it is downloaded to the cache.
    A file with other columns or another number of rows is refused.
    """
    return LAYOUT.load(path, data_dir)
