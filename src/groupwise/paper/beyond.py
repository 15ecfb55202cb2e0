"""The experiments beyond the paper's tables: from a name to tables, figures and a page."""

from collections.abc import Callable
from pathlib import Path

from groupwise.errors import ConfigurationError
from groupwise.paper import ablation, classification, enumeration, lending, prose, rates, routing
from groupwise.paper.claims import Outcome, Request, Study, expected
from groupwise.paper.figures import illustrate
from groupwise.progress import progress_bar
from groupwise.report.page import Page, Section, html
from groupwise.report.provenance import versions
from groupwise.report.tables import Table, csv_text, json_text, latex
from groupwise.writing import folder, write

STUDIES = {
    "routing": routing.STUDY,
    "classification-transductive": classification.TRANSDUCTIVE,
    "classification-separator": classification.SEPARATOR,
    "lending": lending.STUDY,
    "enumeration": enumeration.STUDY,
    "ablation": ablation.STUDY,
    "rates": rates.STUDY,
    "claims": prose.STUDY,
}


def study_of(name: str) -> Study:
    """The experiment of a name."""
    if name not in STUDIES:
        raise ConfigurationError(
            f"There is no experiment {name!r}; there are {', '.join(STUDIES)}."
        )
    return STUDIES[name]


def run(
    name: str, request: Request, show: Callable[[Table], None] = lambda table: None
) -> tuple[Outcome, Path]:
    """Run an experiment; all goes to a folder of its name in ``request.out``."""
    study = study_of(name)
    outcome = study.run(request)
    if request.whole:
        outcome = outcome.compared(expected(name))
    out = folder(Path(request.out) / name)
    claims = outcome.claims()
    for table in (*outcome.tables, claims):
        show(table)
    record = {
        "name": name,
        "numbers": outcome.numbers,
        "checks": [check.__dict__ for check in outcome.checks],
    }
    files = {"JSON": f"{name}.json", "LaTeX": f"{name}.tex"}
    if outcome.records:
        record["records"] = list(outcome.records)
        files["CSV"] = f"{name}.csv"
        write(out / files["CSV"], csv_text(list(outcome.records)))
    write(out / f"{name}.json", json_text(record))
    write(out / f"{name}.tex", "\n".join(latex(table) for table in outcome.tables))
    count = len(outcome.figures)
    with progress_bar(count, "figures", bool(request.what), "figures", steady=True) as advance:
        advance(0)
        drawn = list(illustrate(outcome.figures, out, advance=advance))
    section = Section(study.title, name, [*outcome.tables, *drawn], files)
    lead = [study.about, *outcome.notes]
    page = Page(study.title, lead, claims, [section], {"Made with": versions()})
    return outcome, write(out / "index.html", html(page))
