"""Tables for LaTeX, without any package."""

from groupwise.report.table import Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> escape("HighSchool&less ± 5%")
    'HighSchool\\&less $\\pm$ 5\\%'
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def latex(table: Table) -> str:
    """A ``table`` environment to be included in a document."""
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    spans = " & ".join(
        escape(span) if count == 1 else rf"\multicolumn{{{count}}}{{c}}{{{escape(span)}}}"
        for span, count in table.spans
    )
    lines = [
        r"\begin{table}[ht]",
        r"\centering",
        rf"\caption{{{escape(table.title)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\hline",
        *([rf"{spans} \\"] if any(column.span for column in table.columns) else []),
        " & ".join(escape(column.title) for column in table.columns) + r" \\",
        r"\hline",
        *(" & ".join(escape(cell.text) for cell in row) + r" \\" for row in table.rows),
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
