"""What the paper says of its data and settings: each number held against what the tables need."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import groupwise as gw
from groupwise.arrays import Vector
from groupwise.datasets import PAPER_SEEDS, Dataset, paper_order, published
from groupwise.datasets.adult import LAYOUT as ADULT_LAYOUT
from groupwise.datasets.medical import LAYOUT as MEDICAL_LAYOUT
from groupwise.datasets.synthetic import COLOURS, SHAPES
from groupwise.paper.evidence import ADULT, MEDICAL, SHUFFLED, SYNTHETIC, Evidence
from groupwise.paper.findings import COSTS, INCOME, MORE, SYNTH
from groupwise.paper.published import EXPERIMENTS
from groupwise.paper.statements import Judgement, Statement, stated
from groupwise.paper.theory import INTRO
from groupwise.report.tables import number

SETUP = "5.1 Algorithm and metric"
FEW = 300
"""Rounds for which the baseline is computed again, plainly."""
SHAPE_SHARES, COLOUR_SHARES = (0.5, 0.3, 0.2), (0.6, 0.4)


def of_groups(data: Dataset, *names: str) -> NDArray[np.bool_]:
    """Which rows are in all of these groups."""
    columns = [data.membership[:, data.group_names.index(name)] for name in names]
    found: NDArray[np.bool_] = np.all(np.array(columns) > 0, axis=0)
    return found


def fitted(data: Dataset, *names: str) -> tuple[Vector, float]:
    """Least squares with a constant on the rows of some groups; what is left, as a deviation."""
    rows = of_groups(data, *names)
    x = np.column_stack([data.features[rows][:, :20], np.ones(int(rows.sum()))])
    theta = np.asarray(np.linalg.lstsq(x, data.label[rows], rcond=None)[0], dtype=np.float64)
    return theta, float(np.std(x @ theta - data.label[rows]))


def experiments(evidence: Evidence) -> Judgement:
    """How many there are of each kind."""
    real = [name for name, each in EXPERIMENTS.items() if each.file is not None]
    made = [name for name in EXPERIMENTS if name not in real]
    found = f"{len(made)} rules; {' and '.join(real)}, of which {len(evidence.absent)} not here"
    return Judgement(found, (len(made), len(real)) == (4, 2))


def figure_1(evidence: Evidence) -> Judgement:
    """Its panels, and the label's range."""
    sizes = [len(members) for _, members in EXPERIMENTS[MEDICAL].headline]
    low, high = (float(edge(evidence.data[MEDICAL].label)) for edge in (np.min, np.max))
    found = f"{sizes[0]} and {sizes[1]} groups, {len(PAPER_SEEDS)} runs, labels in "
    holds = sizes == [5, 2] and len(PAPER_SEEDS) == 10 and low >= 0.0 and high <= 1.0
    return Judgement(f"{found}[{low:g}, {high:.3g}]", holds)


def ensembling(evidence: Evidence) -> Judgement:
    """Our regret on shapes where only these are groups, so that none overlap, and as it was."""
    data = evidence.data[SYNTHETIC[0]]
    data = data.take(paper_order(data.rows, PAPER_SEEDS[0]))
    columns = [data.group_names.index(name) for name in COLOURS]
    parts = {key: gw.presets.paper()[key] for key in ("learner", "aggregator", "play", "clip")}
    alone = gw.replay(data.features, data.label, data.membership[:, columns], **parts)
    lost = []
    for name in COLOURS:
        rows = of_groups(data, name)
        x, y = data.features[rows], data.label[rows]
        theta, *_ = np.linalg.lstsq(x, y, rcond=None)
        lost.append(float(alone.expected_loss[rows].sum() - np.sum((x @ theta - y) ** 2)))
    ours = [float(one.ours[-1]) for one in evidence.of(SYNTHETIC[:1], (SHUFFLED,), COLOURS)]
    found = "{} and {} on green and red with overlaps; {} and {} where colours are all groups"
    found = found.format(*(number(value) for value in (*ours, *lost)))
    holds = max(ours) < 0.0 < min(lost)
    return Judgement(found, holds, {"green": lost[0], "red": lost[1]})


def one_more(evidence: Evidence) -> Judgement:
    """The columns of the membership."""
    counts = {name: data.membership.shape[1] for name, data in evidence.data.items()}
    wanted = {**dict.fromkeys(SYNTHETIC, 6), MEDICAL: 12, ADULT: 13}
    found = ", ".join(
        f"{name.removeprefix('synthetic-')} {count}" for name, count in counts.items()
    )
    always = all((data.membership[:, -1] == 1).all() for data in evidence.data.values())
    return Judgement(found, always and all(wanted[name] == n for name, n in counts.items()))


def plain_ridge(evidence: Evidence) -> Judgement:
    """The estimate of the text, solved anew in every round, beside the baseline's advice."""
    data = evidence.data[SYNTHETIC[0]]
    rows = min(FEW, data.rows)
    x, y, everybody = data.features[:rows], data.label[:rows], np.ones((rows, 1), dtype=np.uint8)
    parts = {key: gw.presets.paper()[key] for key in ("learner", "aggregator", "play", "clip")}
    advice = gw.replay(x, y, everybody, keep=("advice",), **parts).advice
    assert advice is not None
    unit = np.eye(x.shape[1])
    said = [x[t] @ np.linalg.solve(unit + x[:t].T @ x[:t], x[:t].T @ y[:t]) for t in range(rows)]
    off = float(np.abs(np.ravel(advice) - said).max())
    return Judgement(f"{rows} rounds: the same to {off:.0e}", off < 1e-9)


def indicators(evidence: Evidence) -> Judgement:
    """Whether every group's membership is a column of the features."""
    missing = [
        f"{name} ({data.name})"
        for data in evidence.data.values()
        for name, member in zip(data.group_names[:-1], data.membership.T[:-1], strict=True)
        if not (data.features == member[:, None]).all(axis=0).any()
    ]
    found = f"all groups of {len(evidence.data)} data sets are among the features"
    return Judgement(f"not {', '.join(missing)}" if missing else found, not missing)


def synthetic_groups(evidence: Evidence) -> Judgement:
    """Groups, features and their range."""
    data = evidence.data[SYNTHETIC[0]]
    drawn = data.features[:, :-5]
    low, high, mean = (float(f(drawn)) for f in (np.min, np.max, np.mean))
    found = f"{len(SHAPES)} + {len(COLOURS)} groups, {drawn.shape[1]} features in "
    found += f"[{low:.3f}, {high:.3f}], mean {number(mean, 3)}"
    even = low >= 0.0 and high <= 1.0 and abs(mean - 0.5) < 0.01
    return Judgement(found, (len(SHAPES), len(COLOURS), drawn.shape[1]) == (3, 2, 20) and even)


def shares(evidence: Evidence) -> Judgement:
    """Of the shapes and the colours."""
    data = evidence.data[SYNTHETIC[0]]
    found = [data.group_sizes[name] / data.rows for name in (*SHAPES, *COLOURS)]
    off = np.abs(np.array(found) - [*SHAPE_SHARES, *COLOUR_SHARES]).max()
    return Judgement(", ".join(number(share, 3) for share in found), off < 3.0 / np.sqrt(data.rows))


def two_each(evidence: Evidence) -> Judgement:
    """How many groups a row is in, besides that of everybody."""
    counts = evidence.data[SYNTHETIC[0]].membership[:, :-1].sum(axis=1)
    found = f"{int(counts.min())} to {int(counts.max())} groups for each of {len(counts):,}"
    return Judgement(found, bool((counts == 2).all()))


def noiseless(evidence: Evidence) -> Judgement:
    """What the best linear model leaves where one model makes all labels: green comes first."""
    _, left = fitted(evidence.data["synthetic-permutation"], "green")
    found = f"labels are not linear in any group: they have noise, of deviation {number(left, 4)} "
    found += "after scaling to [0, 1], which the text does not mention either"
    return Judgement(found, left < 1e-6, {"left": left})


def models_differ(evidence: Evidence) -> Judgement:
    """Fits where the label is of one group: green, square and red, by the permutation."""
    data = evidence.data["synthetic-permutation"]
    cells = (("green",), ("red", "square"), ("red", "circle"))
    models = [fitted(data, *cell)[0][:-1] for cell in cells]
    apart = [
        float(np.linalg.norm(one - other) / np.linalg.norm(one))
        for i, one in enumerate(models)
        for other in models[:i]
    ]
    found = f"fits differ by at least {number(min(apart))} of their length"
    return Judgement(found, min(apart) > 0.1, {"apart": min(apart)})


def permutation(evidence: Evidence) -> Judgement:
    """Green decides for all its shapes; square for red ones; red for circles and triangles."""
    data = evidence.data["synthetic-permutation"]
    fits = {
        (colour, shape): fitted(data, colour, shape)[0][:-1]
        for colour in COLOURS
        for shape in SHAPES
    }

    def apart(one: tuple[str, str], other: tuple[str, str]) -> float:
        return float(np.linalg.norm(fits[one] - fits[other]) / np.linalg.norm(fits[one]))

    same = [
        apart(("green", "circle"), ("green", "square")),
        apart(("green", "circle"), ("green", "triangle")),
        apart(("red", "circle"), ("red", "triangle")),
    ]
    other = [
        apart(("red", "square"), ("red", "circle")),
        apart(("red", "square"), ("green", "square")),
    ]
    found = f"fits of the six kinds: green’s and red’s agree to {number(max(same), 3)}, a red "
    found += f"square’s is {number(min(other))} from both"
    return Judgement(found, max(same) < 0.1 * min(other), {"apart": min(other)})


def red_first(evidence: Evidence) -> Judgement:
    """The sorted order of every seed."""
    data = evidence.data[SYNTHETIC[0]]
    green = of_groups(data, "green")
    orders = [paper_order(data.rows, seed, data.sort_key) for seed in PAPER_SEEDS]
    holds = all((np.diff(green[order].astype(int)) >= 0).all() for order in orders)
    return Judgement(f"in all {len(orders)} orders", holds)


def medical_columns(evidence: Evidence) -> Judgement:
    """Numeric and categoric columns, and the range of all features."""
    data = evidence.data[MEDICAL]
    counts = len(MEDICAL_LAYOUT.numeric), len(MEDICAL_LAYOUT.categorical)
    low, high = float(data.features.min()), float(data.features.max())
    found = f"{counts[0]} and {counts[1]}; features in [{low:g}, {high:.3g}]"
    return Judgement(found, counts == (3, 3) and low >= 0.0 and high <= 1.0)


def medical_sizes(evidence: Evidence) -> Judgement:
    """3 + 2 + 2 + 4 groups, each of the printed size, and a partition each."""
    data = evidence.data[MEDICAL]
    wanted = {row.group: row.size for row in published()[MEDICAL, SHUFFLED]}
    families = [members for name, members in EXPERIMENTS[MEDICAL].families if name != "Everybody"]
    apart = all(
        (data.membership[:, [data.group_names.index(one) for one in some]].sum(axis=1) == 1).all()
        for some in families
    )
    same = sum(wanted[name] == size for name, size in data.group_sizes.items())
    found = f"{' + '.join(str(len(some)) for some in families)}; {same} of {len(wanted)} sizes as "
    return Judgement(f"{found}printed", apart and same == len(wanted))


def adult_columns() -> Judgement:
    """What the authors' code keeps."""
    counts = len(ADULT_LAYOUT.numeric), len(ADULT_LAYOUT.categorical)
    found = f"{counts[0]} and {counts[1]}: the authors’ code drops {ADULT_LAYOUT.dropped[0]}"
    return Judgement(found, counts == (5, 8))


def adult_groups() -> Judgement:
    """3 + 2 + 2 + 5 groups."""
    counts = [len(some) for name, some in EXPERIMENTS[ADULT].families if name != "Everybody"]
    rows = published()[ADULT, SHUFFLED]
    found = f"{' + '.join(map(str, counts))}, as many as its tables have"
    return Judgement(found, sum(counts) + 1 == len(rows) and counts == [3, 2, 2, 5])


Judge = Callable[[Evidence], Judgement]
SAID: tuple[tuple[str, str, str, str, str, Judge], ...] = (
    (
        INTRO,
        "experiments",
        "Synthetic data under 4 aggregation rules, and two real data sets",
        "groupwise reproduce",
        SYNTHETIC[0],
        experiments,
    ),
    (
        INTRO,
        "figure-1-numbers",
        "Figure 1: 5 demographic and 2 other groups, 10 runs, costs scaled to [0, 1]",
        "medical data",
        MEDICAL,
        figure_1,
    ),
    (
        INTRO,
        "ensembling",
        "Regret is negative because individuals are in several groups, which takes ensembling",
        "mean, one seed; colours alone, which do not overlap",
        SYNTHETIC[0],
        ensembling,
    ),
    (
        SETUP,
        "subsequences",
        "|𝒢| + 1 subsequences: every group’s, and one that is always active",
        "membership, columns",
        SYNTHETIC[0],
        one_more,
    ),
    (
        SETUP,
        "baseline",
        "The baseline is ridge regression on all earlier rounds with the penalty ‖θ‖²",
        "solved anew in every round",
        SYNTHETIC[0],
        plain_ridge,
    ),
    (
        SETUP,
        "indicators",
        "Both have access to group identity: indicators are among the features",
        "features and membership",
        SYNTHETIC[0],
        indicators,
    ),
    (
        SYNTH,
        "synthetic-groups",
        "5 groups, 3 shapes and 2 colours; 20 features, uniform on [0, 1]",
        "synthetic data",
        SYNTHETIC[0],
        synthetic_groups,
    ),
    (
        SYNTH,
        "synthetic-shares",
        "Shapes have shares of 0.5, 0.3 and 0.2, colours of 0.6 and 0.4",
        "synthetic data",
        SYNTHETIC[0],
        shares,
    ),
    (
        SYNTH,
        "synthetic-two",
        "Each individual has two intermediary labels: of a shape and of a colour",
        "synthetic data",
        SYNTHETIC[0],
        two_each,
    ),
    (
        SYNTH,
        "synthetic-linear",
        "An intermediary label is the linear expression wᵀx",
        "least squares on green, permutation",
        SYNTHETIC[0],
        noiseless,
    ),
    (
        SYNTH,
        "synthetic-differ",
        "The parameter vectors differ significantly across groups",
        "least squares, permutation",
        SYNTHETIC[0],
        models_differ,
    ),
    (
        SYNTH,
        "red-first",
        "Sorted: red individuals all appear before green ones",
        "orders of all seeds",
        SYNTHETIC[0],
        red_first,
    ),
    (
        COSTS,
        "medical-columns",
        "3 numeric and 3 categoric features, scaled to [0, 1] and one-hot",
        "medical data",
        MEDICAL,
        medical_columns,
    ),
    (
        COSTS,
        "medical-groups",
        "3 groups by age (35, 50), 2 sexes, 2 by smoking, 4 by body mass (18.5, 25, 30)",
        "medical data, sizes as printed",
        MEDICAL,
        medical_sizes,
    ),
    (
        MORE,
        "permutation",
        "The permutation is green, square, red, triangle, circle",
        "least squares, permutation",
        SYNTHETIC[0],
        permutation,
    ),
)


def statements(evidence: Evidence) -> Iterator[Statement]:
    """All of them."""
    for section, name, claim, how, needs, judge in SAID:
        yield stated(section, name, claim, how, evidence.needing(needs, judge))
    yield stated(
        INCOME,
        "adult-columns",
        "5 numeric and 8 categoric features",
        "datasets.adult, checked on its file",
        adult_columns(),
    )
    yield stated(
        INCOME,
        "adult-groups",
        "3 groups by age, 2 by education, 2 sexes, 5 races",
        "datasets.adult and its tables",
        adult_groups(),
    )
