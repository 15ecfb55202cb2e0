"""Other learners on a stream of numbers, each row predicted before its label is shown.

All with the settings that they come with. What a row holds is the same for all: its numbers, its
texts, and the declared groups that it is in. Linear models and Vowpal Wabbit get a 1 for the text
and the groups of a row; river's trees, which take what is absent for unknown and can find groups
themselves, a 0/1 feature for every text that is ever seen; the number of the text where there are
many, and for Mondrian forests, whose every node holds a range of every feature; LightGBM
categories. Labels are scaled to [0, 1]
by their range, which groupwise is told too: the steps of some depend on it. River's models get
numbers scaled to [0, 1] likewise, and have its scaler before them; not for numbers of few values,
such as a season that is 1 for a thousand rows: the first 2 would be thirty standard deviations
away, and end a linear regression (which is also tried without the scaler).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_streams import Stream

Row = dict[str, Any]
Predictor = Callable[[Stream], NDArray[np.float64]]
FEW = 24
"""Numbers and texts of so few values are taken one by one."""
FIRST = 100
"""Rows before the first fit of what is refitted at every doubling."""


def scaled_labels(stream: Stream) -> NDArray[np.float64]:
    """Labels from 0 to 1."""
    label = stream.label
    return (label - label.min()) / (label.max() - label.min())


def in_units(said: NDArray[np.float64], stream: Stream) -> NDArray[np.float64]:
    """Predictions of scaled labels, in the units of the label."""
    low, high = stream.label.min(), stream.label.max()
    return low + (high - low) * said


def plain_rows(stream: Stream) -> Iterator[Row]:
    """Numbers and texts as they are."""
    yield from stream.fields.to_dict("records")


def flat_rows(stream: Stream) -> Iterator[Row]:
    """Numbers, and a 1 for every text and every group."""
    groups: list[Row] = [{} for _ in range(len(stream.frame))]
    for name, rows in stream.members().items():
        for row in rows.tolist():
            groups[row][name] = 1.0
    for row, inside in zip(plain_rows(stream), groups, strict=True):
        texts = {f"{name}={value}": 1.0 for name, value in row.items() if isinstance(value, str)}
        numbers = {name: float(value) for name, value in row.items() if not isinstance(value, str)}
        yield {**numbers, **texts, **inside}


def dense_rows(stream: Stream, few: int = FEW) -> Iterator[Row]:
    """Numbers, and a 0 or 1 for every text of a column of few; else the number of the text."""
    texts = stream.fields.select_dtypes(exclude="number")
    levels = {name: texts[name].unique().tolist() for name in texts}
    many = {
        name: {value: place for place, value in enumerate(values)}
        for name, values in levels.items()
        if len(values) > few
    }
    flat = [name for name in levels if name not in many]
    absent = {f"{name}={value}": 0.0 for name in flat for value in levels[name]}
    for row in plain_rows(stream):
        numbers = {name: value for name, value in row.items() if name not in levels}
        codes = {name: float(places[row[name]]) for name, places in many.items()}
        yield {**numbers, **codes, **absent, **{f"{name}={row[name]}": 1.0 for name in flat}}


def coded_rows(stream: Stream) -> Iterator[Row]:
    """Numbers, and the number of every text."""
    return dense_rows(stream, 0)


def of_river(
    make: Callable[[], Any],
    rows: Callable[[Stream], Iterable[Row]],
    intercept: bool = False,
    standard: bool = True,
) -> Predictor:
    """A model of river's behind its scaler for numbers, if ``standard``; texts stay as they are.

    With ``intercept``, a feature that is always 1, for models that have none of their own.
    """

    def predict(stream: Stream) -> NDArray[np.float64]:
        from river import compose, preprocessing

        ranges = stream.ranges
        wide = [name for name in ranges if standard and stream.frame[name].nunique() > FEW]
        scaled = compose.Select(*wide) | preprocessing.StandardScaler()
        model = ((scaled + compose.Discard(*wide)) | make()) if wide else make()
        labels = scaled_labels(stream)
        said = np.zeros(len(labels))
        for t, (row, label) in enumerate(zip(rows(stream), labels.tolist(), strict=True)):
            for name, (low, high) in ranges.items():
                row[name] = (row[name] - low) / ((high - low) or 1.0)
            if intercept:
                row["always"] = 1.0
            play = model.predict_one(row)
            said[t] = 0.5 if play is None else play  # before the first row, some say nothing
            model.learn_one(row, label)
        return in_units(said, stream)

    return predict


def _linear() -> Any:
    from river import linear_model

    return linear_model.LinearRegression()


def _bayesian() -> Any:
    from river import linear_model

    return linear_model.BayesianLinearRegression()


def _adaptive_forest() -> Any:
    from river import forest

    return forest.ARFRegressor(seed=0)


def _adaptive_tree() -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeRegressor(seed=0)


def _mondrian_forest() -> Any:
    from river import forest

    return forest.AMFRegressor(seed=0)


def of_vowpal_wabbit(options: str) -> Predictor:
    """Vowpal Wabbit's online regression, all features in one namespace."""

    def predict(stream: Stream) -> NDArray[np.float64]:
        from vowpalwabbit import Workspace

        model = Workspace(f"--quiet {options}")
        labels = scaled_labels(stream)
        said = np.zeros(len(labels))
        names: dict[str, str] = {}  # no space, colon or bar may be in one
        for t, (row, label) in enumerate(zip(flat_rows(stream), labels.tolist(), strict=True)):
            cells = [
                f"{names.setdefault(name, f'f{len(names)}')}:{value!r}"
                for name, value in row.items()
                if value
            ]
            text = " ".join(cells)
            said[t] = model.predict(f"| {text}")
            model.learn(f"{label!r} | {text}")
        model.finish()
        return in_units(said, stream)

    return predict


def of_lightgbm(stream: Stream) -> NDArray[np.float64]:
    """LightGBM, fitted to all rows so far whenever they have doubled; the mean before that."""
    import lightgbm

    fields, label = stream.fields.copy(), stream.label
    for name in fields.select_dtypes(exclude="number"):
        fields[name] = fields[name].astype("category")
    for name, rows in stream.members().items():
        inside = np.zeros(len(fields), dtype=np.int8)
        inside[rows] = 1
        fields[name] = inside
    fields.columns = [f"f{i}" for i in range(fields.shape[1])]  # some signs are refused in names
    before = np.concatenate([[0.0], np.cumsum(label)[:-1]])
    said = before / np.maximum(np.arange(len(label)), 1)
    start = FIRST
    while start < len(label):
        end = min(2 * start, len(label))
        model = lightgbm.LGBMRegressor(random_state=0, n_jobs=1, verbose=-1)
        model.fit(fields.iloc[:start], label[:start])
        said[start:end] = model.predict(fields.iloc[start:end])
        start = end
    return said


RIVER: dict[str, Predictor] = {
    "river LinearRegression": of_river(_linear, flat_rows),
    "river LinearRegression, no scaler": of_river(_linear, flat_rows, standard=False),
    "river BayesianLinearRegression": of_river(_bayesian, flat_rows, intercept=True),
    "river ARFRegressor": of_river(_adaptive_forest, dense_rows),
    "river HoeffdingAdaptiveTreeRegressor": of_river(_adaptive_tree, dense_rows),
    "river AMFRegressor": of_river(_mondrian_forest, coded_rows),
}
PEERS: dict[str, Predictor] = {
    **RIVER,
    "Vowpal Wabbit": of_vowpal_wabbit(""),
    "Vowpal Wabbit -q ::": of_vowpal_wabbit("-q ::"),
    "LightGBM, refitted at every doubling": of_lightgbm,
}
