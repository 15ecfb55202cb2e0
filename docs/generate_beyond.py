"""Writes the table of docs/beyond.md from the JSON files that `groupwise reproduce` leaves.

python docs/generate_beyond.py DIR, after the command that the page names.
"""

import json
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().with_name("beyond.md")
START, END = "<!-- table -->", "<!-- end of table -->"
HEAD = "| experiment | order | group | paper | beyond | difference |\n|---|---|---|---:|---:|---:|"


def table(folder: Path) -> str:
    """One line per group: the published regret, and ours in the same units."""
    lines = [HEAD]
    for file in sorted(folder.glob("*.json")):
        found = json.loads(file.read_text())
        for row in found["rows"]:
            paper, spread = row["published"]["algorithm_regret"]
            ours, own = row["exact"]["algorithm_regret"]
            figures = [f"{paper:.2f} ± {spread:.2f}", f"{ours:.2f} ± {own:.2f}"]
            figures.append(f"{ours - paper:+.2f}")
            cells = [found["experiment"], found["order"], row["group"]]
            cells += [figure.replace("-", "−") for figure in figures]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Put the table between its marks."""
    text = PAGE.read_text()
    before, rest = text.split(START)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{START}\n\n{table(Path(sys.argv[1]))}\n\n{END}{after}")


if __name__ == "__main__":
    main()
