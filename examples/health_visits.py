"""A real file: who sees a doctor how often. Then: groupwise run visits.csv --target visits

The RAND Health Insurance Experiment gave families insurance at random and counted 20,190 years of
outpatient visits. The data are in the public domain and come with statsmodels
(``pip install '.[demo]'``); here they get the names and units that people read.
"""

import csv
import math
import sys
from importlib.util import find_spec
from pathlib import Path

PLACE = Path("datasets", "randhie", "randhie.csv")


def health(row):
    """How people rate their health."""
    words = {"hlthg": "good", "hlthf": "fair", "hlthp": "poor"}
    return next((word for name, word in words.items() if row[name] == "1"), "excellent")


def main(path):
    """Write the file."""
    package = find_spec("statsmodels")
    if package is None or package.origin is None:
        sys.exit("The data come with statsmodels: pip install '.[demo]'")
    source = Path(package.origin).parent / PLACE
    path.parent.mkdir(parents=True, exist_ok=True)
    with source.open(newline="") as given, path.open("w", newline="") as written:
        columns = ("health", "limitation", "diseases", "pays_percent", "deductible", "visits")
        writer = csv.writer(written)
        writer.writerow(columns)
        rows = list(csv.DictReader(given))
        for row in rows:
            writer.writerow(
                (
                    health(row),
                    "yes" if float(row["physlm"]) > 0.5 else "no",
                    round(float(row["disea"]), 2),
                    round(math.expm1(float(row["lncoins"]))),
                    "yes" if row["idp"] == "1" else "no",
                    row["mdvis"],
                )
            )
    print(f"{len(rows):,} rows of {', '.join(columns)} in {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "visits.csv"))
