"""The page of a reproduction."""

from collections.abc import Mapping, Sequence

from groupwise.report.page import Illustration, Page, Section, versions
from groupwise.reproduce.results import Result
from groupwise.reproduce.tables import NOTE, summary_table, table_of

TITLE = "Oracle efficient groupwise regret, reproduced"
CITATION = (
    "The tables and figures of Acharya, Arunachaleswaran, Kannan, Roth and Ziani, “Oracle "
    "Efficient Algorithms for Groupwise Regret” (ICLR 2024), computed anew by groupwise, next to "
    "the published figures. The baseline is one online ridge regression for everybody; our "
    "algorithm has one for every group as well, and combines them."
)
CERTIFICATE = (
    "What the paper does not show: a certificate bounds the regret on each group at every moment "
    "of the run. It holds where losses stay in [0, 1]; the paper does not clip predictions, so a "
    "run may leave that range, and its certificates are then void."
)


def page_of(
    results: Sequence[Result],
    illustrations: Mapping[str, Sequence[Illustration]],
    notes: Sequence[str],
) -> Page:
    """All tables and figures; ``illustrations`` by the result's name."""
    settings = results[0].settings
    changed = ", ".join(f"{name} = {_word(value)}" for name, value in settings.changes.items())
    lead = [CITATION, NOTE, CERTIFICATE, *notes]
    if changed:
        lead.insert(1, f"Not the paper’s settings: {changed}.")
    return Page(
        title=TITLE,
        lead=lead,
        summary=summary_table(results),
        sections=[
            Section(
                title=result.title,
                anchor=result.name,
                blocks=[table_of(result), *illustrations[result.name]],
                files={kind: f"{result.name}.{kind.lower()}" for kind in ("JSON", "CSV")}
                | {"LaTeX": f"{result.name}.tex"},
            )
            for result in results
        ],
        facts={
            "Settings": {
                **{_title(name): _word(value) for name, value in settings.to_dict().items()},
                "Seeds": ", ".join(map(str, results[0].seeds)),
            },
            "Made with": versions(),
        },
    )


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "the aggregator’s own" if value is None else str(value)
