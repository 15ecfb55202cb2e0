"""The paper's figures, and two that it does not have: the certificate, and regret per round."""

from collections.abc import Iterator

import numpy as np

from groupwise.report.figures import Figure, Line, Panel
from groupwise.reproduce.results import Result
from groupwise.states import Vector

BASELINE, OURS, CERTIFICATE = 0, 1, 2
_ROUNDS = "rounds of the group"


def figures_of(result: Result) -> Iterator[Figure]:
    """All figures of one table."""
    spread = "Mean ± one standard deviation over the seeds."
    yield Figure(
        f"{result.name}-regret",
        f"Regret of the baseline and of our algorithm against time. {spread}",
        _ROUNDS,
        "regret",
        tuple(_regret(result, g) for g in range(len(result.groups))),
    )
    headline = result.experiment.headline if result.order == "shuffled" else ()
    for suffix, families, caption in (
        ("figure-1", headline, "as in the paper’s Figure 1"),
        ("fraction", result.experiment.families, "by family of groups"),
    ):
        if families:
            yield Figure(
                f"{result.name}-{suffix}",
                f"Regret against the fraction of the group seen, {caption}. "
                "Our algorithm is the plain line, the baseline the marked one.",
                "fraction of the group",
                "regret",
                tuple(_family(result, *family) for family in families),
                shared_legend=False,
                columns=min(3, len(families)),
            )
    yield Figure(
        f"{result.name}-per-round",
        f"Regret per round of the group, in thousandths, from a twentieth of its rounds on. "
        f"{spread}",
        _ROUNDS,
        "regret per 1,000 rounds",
        tuple(_per_round(result, g) for g in range(len(result.groups))),
    )
    certified = [g for g in range(len(result.groups)) if _certified(result, g)]
    if certified:
        yield Figure(
            f"{result.name}-certificate",
            f"Our regret and the certificate that bounds it at every moment. {spread}",
            _ROUNDS,
            "regret",
            tuple(_certificate(result, g) for g in certified),
        )


def _certified(result: Result, group: int) -> bool:
    return bool(np.isfinite(result.runs[0].certificate[group]).all())


def _over_seeds(result: Result, group: int) -> tuple[Vector, dict[str, Vector]]:
    """Rounds, and for each kind of curve an array with a row per seed."""
    runs = result.runs
    best = np.array([run.best_loss[group] for run in runs])
    return runs[0].rounds[group].astype(np.float64), {
        "baseline": np.array([run.baseline_loss[group] for run in runs]) - best,
        "ours": np.array([run.loss[group] for run in runs]) - best,
        "certificate": np.array([run.certificate[group] for run in runs]),
    }


def _line(label: str, x: Vector, values: Vector, colour: int) -> Line:
    return Line(label, x, values.mean(axis=0), values.std(axis=0), colour)


def _regret(result: Result, group: int) -> Panel:
    rounds, curves = _over_seeds(result, group)
    return Panel(
        result.groups[group],
        (
            _line("baseline", rounds, curves["baseline"], BASELINE),
            _line("our algorithm", rounds, curves["ours"], OURS),
        ),
    )


def _per_round(result: Result, group: int) -> Panel:
    rounds, curves = _over_seeds(result, group)
    late = rounds >= max(rounds[-1] / 20, 1.0)  # before that a single round's loss drowns all
    x = rounds[late]
    thousands = x / 1000
    return Panel(
        result.groups[group],
        (
            _line("baseline", x, curves["baseline"][:, late] / thousands, BASELINE),
            _line("our algorithm", x, curves["ours"][:, late] / thousands, OURS),
        ),
    )


def _certificate(result: Result, group: int) -> Panel:
    rounds, curves = _over_seeds(result, group)
    void = sum(bool(run.void[group, -1]) for run in result.runs)
    return Panel(
        result.groups[group],
        (
            _line("our algorithm", rounds, curves["ours"], OURS),
            _line("its certificate", rounds, curves["certificate"], CERTIFICATE),
        ),
        note=f"void in {void} of {len(result.runs)} runs: a loss left [0, 1]" if void else "",
    )


def _family(result: Result, title: str, members: tuple[str, ...]) -> Panel:
    lines = []
    for colour, name in enumerate(members):
        rounds, curves = _over_seeds(result, result.groups.index(name))
        fraction = rounds / max(rounds[-1], 1.0)
        lines.append(Line(name, fraction, curves["ours"].mean(axis=0), colour=colour))
        lines.append(Line("", fraction, curves["baseline"].mean(axis=0), None, colour, "marked"))
    return Panel(title, tuple(lines))
