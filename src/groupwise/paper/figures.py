"""The paper's figures, and two that it does not have: the certificate, and regret per round."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from groupwise.arrays import Vector
from groupwise.paper.engine import in_processes
from groupwise.paper.tables import Result
from groupwise.report.figures import Figure, Line, Panel, draw, inline
from groupwise.report.page import Illustration
from groupwise.writing import folder, write

FEW = 4
"""So few figures are drawn sooner than another process has started."""
LABELS = {"baseline": "baseline", "ours": "our algorithm", "certificate": "its certificate"}
"""The curves of a group, in the order of their colours."""


def figures_of(result: Result) -> Iterator[Figure]:
    """All figures of one table."""
    groups = range(len(result.groups))
    rounds, spread = "rounds of the group", "Mean ± one standard deviation over the seeds."
    yield Figure(
        f"{result.name}-regret",
        f"Regret of the baseline and of our algorithm against time. {spread}",
        rounds,
        "regret",
        tuple(_panel(result, g, ("baseline", "ours")) for g in groups),
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
                styles={LABELS["ours"]: "solid", LABELS["baseline"]: "marked"},
                columns=min(3, len(families)),
            )
    yield Figure(
        f"{result.name}-per-round",
        f"Regret per round of the group, in thousandths, from a twentieth of its rounds on. "
        f"{spread}",
        rounds,
        "regret per 1,000 rounds",
        tuple(_panel(result, g, ("baseline", "ours"), per_round=True) for g in groups),
    )
    certified = [g for g in groups if np.isfinite(result.runs[0].certificate[g]).all()]
    if certified:
        yield Figure(
            f"{result.name}-certificate",
            f"Our regret and the certificate that bounds it at every moment. {spread}",
            rounds,
            "regret",
            tuple(_panel(result, g, ("ours", "certificate")) for g in certified),
        )


def illustrate(
    figures: Sequence[Figure],
    place: Path,
    address: str = "",
    jobs: int | None = 1,
    advance: Callable[[int], None] = lambda count: None,
) -> Iterator[Illustration]:
    """Write every figure as SVG and PDF to a folder, at ``address`` for the page that shows it."""
    folder(place)
    calls = [partial(draw, figure) for figure in figures]
    drawings = in_processes(calls, 1 if len(calls) <= FEW else jobs)
    for figure, drawing in zip(figures, drawings, strict=True):
        write(place / f"{figure.name}.svg", drawing.svg)
        write(place / f"{figure.name}.pdf", drawing.pdf)
        advance(1)
        files = {kind.upper(): f"{address}{figure.name}.{kind}" for kind in ("svg", "pdf")}
        yield Illustration(figure, inline(figure, drawing), files)


def curves_of(result: Result, group: int) -> tuple[Vector, dict[str, Vector]]:
    """Rounds, and for each kind of curve an array with a row per seed."""
    loss, baseline, best, certificate = (
        np.array([getattr(run, kind)[group] for run in result.runs])
        for kind in ("loss", "baseline_loss", "best_loss", "certificate")
    )
    curves = {"baseline": baseline - best, "ours": loss - best, "certificate": certificate}
    return result.runs[0].rounds[group].astype(np.float64), curves


def _panel(result: Result, group: int, kinds: tuple[str, ...], per_round: bool = False) -> Panel:
    x, curves = curves_of(result, group)
    if per_round:
        late = x >= max(x[-1] / 20, 1.0)  # before that a single round's loss drowns all
        x = x[late]
        curves = {kind: values[:, late] / (x / 1000) for kind, values in curves.items()}
    void = sum(bool(run.void[group, -1]) for run in result.runs) if "certificate" in kinds else 0
    return Panel(
        result.groups[group],
        tuple(
            Line.over_seeds(label, x, curves[kind], colour)
            for colour, (kind, label) in enumerate(LABELS.items())
            if kind in kinds
        ),
        note=f"void in {void} of {len(result.runs)} runs: a loss left [0, 1]" if void else "",
    )


def _family(result: Result, title: str, members: tuple[str, ...]) -> Panel:
    lines = []
    for colour, name in enumerate(members):
        rounds, curves = curves_of(result, result.groups.index(name))
        fraction = rounds / max(rounds[-1], 1.0)
        lines.append(Line(name, fraction, curves["ours"].mean(axis=0), colour=colour))
        lines.append(Line("", fraction, curves["baseline"].mean(axis=0), None, colour, "marked"))
    return Panel(title, tuple(lines))
