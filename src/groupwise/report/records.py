"""Nested records of plain values as JSON, and flattened as CSV."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

PAIR = ("mean", "std")
"""What a list of two figures in a record is."""


def json_text(value: Any) -> str:
    """JSON that any reader takes: a figure that is not finite is null."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per record; nested keys are joined by underscores."""
    flat = [_flat(record) for record in records]
    header = list(dict.fromkeys(key for record in flat for key in record))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return stream.getvalue()


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}_"))
        elif isinstance(value, (list, tuple)):
            flat.update({f"{prefix}{key}_{p}": v for p, v in zip(PAIR, value, strict=True)})
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
