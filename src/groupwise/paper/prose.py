"""Every number and every "always" in the paper's prose, checked."""

from functools import partial

from groupwise.paper import described, findings, theory
from groupwise.paper.claims import Check, Outcome, Request, Study
from groupwise.paper.engine import in_processes
from groupwise.paper.evidence import Evidence, gathered
from groupwise.paper.statements import LINEAR, SUBSTANTIAL, Statement, counted, percent, tables_of
from groupwise.report.figures import Figure, Line, Panel, Style

ORDER = (
    theory.ABSTRACT,
    theory.INTRO,
    theory.MODEL,
    theory.METHOD,
    theory.USES,
    described.SETUP,
    findings.SYNTH,
    findings.COSTS,
    findings.MORE,
    findings.MORE_COSTS,
    findings.INCOME,
    findings.TABLES,
    theory.TASTING,
)
"""The paper's sections."""
COLOURS = 5
STYLES: tuple[Style, ...] = ("solid", "dashed", "marked")
"""Curves that have the same colour have different styles."""


def run(request: Request) -> Outcome:
    """The tables' runs, then what is said of them, of the data, of time and of bounds."""
    evidence = gathered(request)
    said = [*findings.statements(evidence), *described.statements(evidence)]
    # Of the others, those that measure time are run one after another.
    for sentences, jobs in ((theory.CLAIMS, request.jobs), (theory.TIMINGS, 1)):
        calls = [partial(theory.judged, sentence) for sentence in sentences]
        said += in_processes(calls, jobs, request.what, "claims")
    said.sort(key=lambda one: ORDER.index(one.section))
    names = [one.name for one in said]
    assert len(set(names)) == len(names)
    return Outcome(
        [counted(said), *tables_of(said)],
        [_figure(evidence)],
        _checks(said),
        {key: value for one in said for key, value in one.figures().items()},
        [
            *(f"{name} is left out: {why}." for name, why in evidence.absent.items()),
            *([] if request.whole else ["With all seeds and rounds verdicts may be others."]),
        ],
        [one.record() for one in said],
    )


def _checks(said: list[Statement]) -> list[Check]:
    """What does not depend on how the paper puts it: the theorem and the corollaries."""
    proved = ("theorem-2", "fractional")
    return [
        Check(one.claim, bool(one.holds), one.found)
        for one in said
        if one.holds is not None and (one.name in proved or one.name.startswith("corollary-"))
    ]


def _figure(evidence: Evidence) -> Figure:
    """By how much our regret is the lower one, of every table."""
    panels = []
    for (name, order), groups in evidence.groups.items():
        lines = tuple(
            Line(
                one.group,
                one.rounds / one.rounds[-1],
                one.baseline - one.ours,
                None,
                number % COLOURS,
                STYLES[number // COLOURS % len(STYLES)],
            )
            for number, one in enumerate(groups)
        )
        panels.append(Panel(f"{name}, {order}", lines))
    return Figure(
        "claims-lower",
        "The baseline’s regret minus ours against the fraction of the group seen: where a curve is "
        "above zero our regret is the lower one. Means over the seeds.",
        "fraction of the group",
        "regret saved",
        tuple(panels),
        shared_legend=False,
        columns=2,
    )


STUDY = Study(
    "What the paper says in words, checked",
    "Sentence by sentence: every number, and every always, all, consistently and for every, from "
    "the abstract to the appendix. The tables' runs are made anew, with the paper's data, seeds "
    "and settings; bounds and times are those of this library. A claim holds, or does not hold as "
    "it is written, whatever was meant; some cannot be checked here, because data may not be "
    f"passed on. “Substantial” and “significant” are read as {percent(SUBSTANTIAL)} of the "
    f"baseline's loss, “linear” as an exponent of at least {LINEAR:g} over the last three quarters "
    "of a group's rounds, “decreasing” as less at the end than halfway, “always” as at each of 60 "
    "evenly spaced moments, means over the seeds throughout.",
    run,
)
