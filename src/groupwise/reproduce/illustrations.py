"""Drawing all figures of a reproduction, in as many processes as there are jobs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from groupwise.report.figures import Drawing, Figure, draw, inline
from groupwise.report.page import Illustration
from groupwise.reproduce.figures import figures_of
from groupwise.reproduce.results import Result
from groupwise.stream import job_count
from groupwise.writing import folder, write

FOLDER = "figures"
FEW = 4
"""So few figures are drawn sooner than another process has started."""


def illustrate(
    results: Sequence[Result], out: Path, jobs: int | None, advance: Callable[[int], None]
) -> dict[str, list[Illustration]]:
    """Write every result's figures as SVG and PDF; by the result's name, what a page shows."""
    place = folder(out / FOLDER)
    figures = [(result.name, figure) for result in results for figure in figures_of(result)]
    shown: dict[str, list[Illustration]] = {result.name: [] for result in results}
    drawings = _drawn([figure for _, figure in figures], job_count(jobs))
    for (name, figure), drawing in zip(figures, drawings, strict=True):
        write(place / f"{figure.name}.svg", drawing.svg)
        write(place / f"{figure.name}.pdf", drawing.pdf)
        files = {kind.upper(): f"{FOLDER}/{figure.name}.{kind}" for kind in ("svg", "pdf")}
        shown[name].append(Illustration(figure, inline(figure, drawing), files))
        advance(1)
    return shown


def _drawn(figures: Sequence[Figure], jobs: int) -> Iterator[Drawing]:
    if jobs == 1 or len(figures) <= FEW:
        yield from map(draw, figures)
        return
    import joblib

    parallel = joblib.Parallel(jobs, "loky", return_as="generator")
    yield from parallel(joblib.delayed(draw)(figure) for figure in figures)
