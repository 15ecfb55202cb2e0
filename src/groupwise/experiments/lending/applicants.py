"""Applicants: the people of the UCI Adult data, or a generated stand-in."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np

from groupwise.datasets._files import DataFile, locate
from groupwise.errors import DatasetError
from groupwise.experiments.tasting import Stream

FILE = DataFile(
    name="adult.data",
    address="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
)
TABLE_NAMES = ("adult_uci.csv.gz", "adult_uci.csv")
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
STAND_IN_ROWS = 30_000
STAND_IN_SEED = 21

FIELDS = [
    "over_35",
    "over_50",
    "some_college",
    "degree",
    "married",
    "full_time",
    "long_hours",
    "office",
    "self_employed",
    "has_gains",
    "has_losses",
    "native",
]
GROUP_FIELDS = ["sex", "race", "age_group"]

Record = dict[str, str]


def applicants(data: str | os.PathLike[str] | None, limit: int | None) -> tuple[Stream, str]:
    """The stream of applicants in the file's order, and where they come from."""
    try:
        path = find(data)
    except DatasetError:
        records = stand_in()
        source = f"{len(records):,} generated people, since the UCI file could not be had"
    else:
        records = read(path)
        source = f"{len(records):,} people of the UCI Adult data"
    return stream_of(records[:limit]), source


def find(data: str | os.PathLike[str] | None) -> Path:
    """The file that is given, or one in the folder; else the UCI's own file, downloaded."""
    if data is not None and Path(data).is_file():
        return Path(data)
    places = [Path(place) for place in (data, os.environ.get("GROUPWISE_DATA")) if place]
    for place in places:
        for name in TABLE_NAMES:
            if (place / name).is_file():
                return place / name
    return locate(FILE, data_dir=data)


def read(path: Path) -> list[Record]:
    """The records of a file with a header, or of the UCI's own, which has none."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="", encoding="utf-8") as stream:
        lines = [line for line in csv.reader(stream, skipinitialspace=True) if line]
    header = lines[0] if "income" in lines[0] else COLUMNS
    rows = lines[1:] if header is lines[0] else lines
    missing = set(COLUMNS) - set(header)
    if missing or any(len(row) != len(header) for row in rows):
        raise DatasetError(f"{path} is not the Adult data: it lacks {', '.join(sorted(missing))}.")
    return [dict(zip(header, row, strict=True)) for row in rows]


def stand_in() -> list[Record]:
    """Generated people with the columns that are used; no relation to anybody."""
    rng = np.random.default_rng(STAND_IN_SEED)
    records = []
    for _ in range(STAND_IN_ROWS):
        age, school = int(rng.integers(18, 75)), int(rng.integers(5, 17))
        hours, married = int(rng.normal(40, 10)), rng.random() < 0.5
        score = 0.25 * (school - 10) + 0.03 * (age - 40) + 1.5 * married + 0.03 * (hours - 40) - 1.5
        records.append(
            {
                "age": str(age),
                "education-num": str(school),
                "marital-status": "Married-civ-spouse" if married else "Never-married",
                "hours-per-week": str(hours),
                "occupation": str(rng.choice(["Exec-managerial", "Sales", "Craft-repair"])),
                "workclass": "Self-emp-inc" if rng.random() < 0.1 else "Private",
                "capital-gain": str(int(rng.random() < 0.08) * 5_000),
                "capital-loss": str(int(rng.random() < 0.05) * 1_500),
                "native-country": "United-States" if rng.random() < 0.9 else "Mexico",
                "sex": "Male" if rng.random() < 0.6 else "Female",
                "race": str(rng.choice(["White", "Black", "Other"], p=[0.8, 0.15, 0.05])),
                "income": ">50K" if rng.random() < 1.0 / (1.0 + np.exp(-score)) else "<=50K",
            }
        )
    return records


def stream_of(records: list[Record]) -> Stream:
    """Bits, groups and labels."""
    rows = [_row(record) for record in records]
    labels = np.array([float(record["income"].startswith(">50K")) for record in records])
    bits = np.array([[row[field] for field in FIELDS] for row in rows], dtype=np.float64)
    names = sorted({f"{field}={row[field]}" for row in rows for field in GROUP_FIELDS})
    member = np.array(
        [[row[name.split("=")[0]] == name.split("=")[1] for name in names] for row in rows]
    )
    everybody = np.ones((len(rows), 1), dtype=bool)
    return Stream(rows, bits, labels, np.hstack([member, everybody]), (*names, "always_on"))


def _row(record: Record) -> dict[str, int | str]:
    age, school = int(record["age"]), int(record["education-num"])
    hours = int(record["hours-per-week"])
    bits = {
        "over_35": age > 35,
        "over_50": age > 50,
        "some_college": school >= 10,
        "degree": school >= 13,
        "married": record["marital-status"].startswith("Married"),
        "full_time": hours >= 40,
        "long_hours": hours > 45,
        "office": record["occupation"] in ("Exec-managerial", "Prof-specialty", "Tech-support"),
        "self_employed": record["workclass"].startswith("Self"),
        "has_gains": int(record["capital-gain"]) > 0,
        "has_losses": int(record["capital-loss"]) > 0,
        "native": record["native-country"] == "United-States",
    }
    groups = {
        "sex": record["sex"],
        "race": record["race"],
        "age_group": "young" if age <= 35 else "middle" if age <= 50 else "old",
    }
    return {**{field: int(bit) for field, bit in bits.items()}, **groups}
