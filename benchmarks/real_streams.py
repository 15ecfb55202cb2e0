"""Real streams in order, the groups that are declared for each, and what everybody is given.

A table is read as it is; dates become hour, minute, weekday, month and days since the first row,
and the past labels that a row may know of stand beside its other fields, if asked for. Nobody gets
a feature that another does not get. The groups are fixed here, whatever a model proposes.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import groupwise as gw
from groupwise.errors import FeatureError
from groupwise.features.calendar import Calendar
from groupwise.features.derived import Derived
from groupwise.files.plan import Plan, planned
from groupwise.files.scan import Scan
from groupwise.groups import Group
from groupwise.groups.columns import as_table
from groupwise.groups.family import Groups

AGES = [25, 35, 45, 55]


@dataclass(frozen=True)
class Stream:
    """Rows in the order in which they are predicted, with their labels in the column ``target``.

    ``file`` is the table that they come from, in the order of its column ``order``; where there is
    none, they have no past. ``unfit`` are columns of the file that tell the label. ``past`` are the
    fields that were made of earlier labels.
    """

    name: str
    unit: str
    target: str
    frame: pd.DataFrame
    groups: tuple[Group, ...]
    past: tuple[str, ...] = ()
    file: Path | None = None
    order: str | None = None
    unfit: tuple[str, ...] = ()

    @property
    def label(self) -> NDArray[np.float64]:
        """What is to be predicted."""
        return self.frame[self.target].to_numpy(float)

    @property
    def loss(self) -> gw.losses.Square:
        """Square loss on the range of the labels."""
        return gw.losses.Square(float(self.label.min()), float(self.label.max()))

    @property
    def fields(self) -> pd.DataFrame:
        """What a prediction may use."""
        return self.frame.drop(columns=self.target)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of every number; what was made of labels is of scaled ones, or their rises."""
        numbers = self.fields.select_dtypes("number")
        own = {name: (numbers[name].min(), numbers[name].max()) for name in numbers}
        return own | dict.fromkeys(self.past, (0.0, 1.0))

    def with_past(self) -> "Stream":
        """The same rows, and what the command makes of the labels before them for its own model."""
        with self.planned() as (_, plan):
            dates = [one for one in plan.features.values() if isinstance(one, Calendar)]
            makers = [*dates, *plan.past]
        rows = self.rows().sort_values(self.order, kind="stable", ignore_index=True)
        table = as_table(rows.drop(columns=self.target), FeatureError)
        derived = Derived(makers, (), Groups((), True), self.loss)
        derived.of_frame(table, self.loss.encode_many(self.label))
        names = [name for maker in plan.past for name in maker.fields]
        made = pd.DataFrame({name: table.made[name].values for name in names})
        return replace(self, frame=pd.concat([self.frame, made], axis=1), past=tuple(names))

    def rows(self) -> pd.DataFrame:
        """The file, without what tells the label."""
        return pd.read_csv(self.file).drop(columns=list(self.unfit))

    @contextmanager
    def planned(self) -> Iterator[tuple[Scan, Plan]]:
        """What `groupwise run FILE --target COLUMN --order COLUMN` finds, and would do."""
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "rows.csv")
            self.rows().to_csv(file, index=False)
            with planned(str(file), target=self.target, order=self.order) as found:
                yield found

    def members(self) -> dict[str, NDArray[np.int64]]:
        """The rows of each declared group."""
        found = Groups(self.groups, False).of_frame(self.frame)
        row = np.repeat(np.arange(len(self.frame)), np.diff(found.indptr))
        return {name: row[found.indices == g] for g, name in enumerate(found.names)}


def calendar(dates: pd.Series, name: str, parts: Sequence[str]) -> pd.DataFrame:
    """Parts of a date; ``days`` are those since the first row."""
    moments = pd.to_datetime(dates)
    every = {
        "hour": moments.dt.hour,
        "minute": moments.dt.minute,
        "weekday": moments.dt.weekday,
        "month": moments.dt.month,
        "days": (moments - moments.iloc[0]) / pd.Timedelta(days=1),
    }
    return pd.DataFrame({f"{name} {part}": every[part] for part in parts})


def bike(folder: Path) -> Stream:
    """Bicycles hired in Washington, by the hour, in the order of their numbers: dates err."""
    file = folder / "bike_sharing_hour.csv.gz"
    frame = pd.read_csv(file).drop(columns=["casual", "registered", "dteday"])
    names = ("hr", "weekday", "workingday", "season", "weathersit")
    return Stream(
        name="bike",
        unit="hires",
        target="cnt",
        frame=frame,
        groups=tuple(gw.by(name) for name in names),
        file=file,
        order="instant",
        unfit=("casual", "registered"),
    )


def electricity(folder: Path) -> Stream:
    """Demand for electricity in Victoria, by the half-hour; times are universal, dates local."""
    file = folder / "vic_elec.csv.gz"
    frame = pd.read_csv(file).sort_values("Time", kind="stable", ignore_index=True)
    time = calendar(frame["Time"], "Time", ["hour", "minute", "days"])
    date = calendar(frame["Date"], "Date", ["weekday", "month"])
    frame["Holiday"] = frame["Holiday"].astype(int)
    names = ("Time hour", "Date weekday", "Holiday", "Date month")
    return Stream(
        name="electricity",
        unit="MW",
        target="Demand",
        frame=pd.concat([frame.drop(columns=["Time", "Date"]), time, date], axis=1),
        groups=tuple(gw.by(name) for name in names),
        file=file,
        order="Time",
    )


def retail(folder: Path) -> Stream:
    """Turnover of Australian shops, by the month, 152 series side by side."""
    file = folder / "aus_retail.csv.gz"
    frame = pd.read_csv(file).sort_values("Month", kind="stable", ignore_index=True)
    date = calendar(frame["Month"], "Month", ["month", "days"])
    return Stream(
        name="retail",
        unit="million AUD",
        target="Turnover",
        frame=pd.concat([frame.drop(columns="Month"), date], axis=1),
        groups=(gw.by("State"), gw.by("Industry")),
        file=file,
        order="Month",
    )


def insurance(folder: Path) -> Stream:
    """Medical charges; in no order, so taken in that of the file."""
    file = folder / "insurance.csv"
    names = ("sex", "smoker", "region", "children")
    return Stream(
        name="insurance",
        unit="USD",
        target="charges",
        frame=pd.read_csv(file),
        groups=(*(gw.by(name) for name in names), gw.cut("age", AGES)),
        file=file,
    )


def adult(folder: Path) -> Stream:
    """Income above 50,000 as a number, 0 or 1; the first 5,000 rows."""
    file = folder / "adult_uci.csv.gz"
    frame = pd.read_csv(file, skipinitialspace=True, keep_default_na=False, nrows=5_000)
    frame["income"] = frame["income"].str.contains(">50K").astype(float)
    groups = (gw.by("sex"), gw.by("race"), gw.by("workclass"), gw.cut("age", [*AGES, 65]))
    return Stream("Adult", "chance", "income", frame.drop(columns="split"), groups)


def diabetes(folder: Path) -> Stream:
    """Progression of diabetes after a year; scikit-learn's."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    groups = (gw.by("sex"), gw.cut("age", AGES), gw.cut("bmi", [25.0, 30.0]))
    return Stream("diabetes", "points", "target", frame, groups)


def fair(folder: Path) -> Stream:
    """Time spent in extramarital affairs (Fair 1978); statsmodels' own."""
    import statsmodels.api

    frame = statsmodels.api.datasets.fair.load_pandas().data
    names = ("rate_marriage", "religious", "children", "occupation", "educ")
    return Stream("fair", "hours", "affairs", frame, tuple(gw.by(name) for name in names))


def randhie(folder: Path) -> Stream:
    """Visits to a doctor in a year (RAND health insurance experiment); statsmodels' own."""
    import statsmodels.api

    frame = statsmodels.api.datasets.randhie.load_pandas().data.iloc[:20_000]
    names = ("idp", "hlthg", "hlthf", "hlthp")
    groups = (*(gw.by(name) for name in names), gw.cut("disea", [5.0, 10.0, 15.0, 20.0]))
    return Stream("randhie", "visits", "mdvis", frame, groups)


def anes(folder: Path) -> Stream:
    """Where people see themselves from left to right, in 1996; statsmodels' own."""
    import statsmodels.api

    frame = statsmodels.api.datasets.anes96.load_pandas().data
    groups = (gw.by("TVnews"), gw.by("PID"), gw.by("educ"), gw.cut("age", [*AGES, 65]))
    return Stream("anes96", "points", "selfLR", frame, groups)


STREAMS: dict[str, Callable[[Path], Stream]] = {
    "bike": bike,
    "electricity": electricity,
    "retail": retail,
    "insurance": insurance,
}
SMALL: dict[str, Callable[[Path], Stream]] = {
    "insurance": insurance,
    "Adult": adult,
    "diabetes": diabetes,
    "fair": fair,
    "randhie": randhie,
    "anes96": anes,
}
"""At most 20,000 rows; the last four come with scikit-learn and statsmodels."""
