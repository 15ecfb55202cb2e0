"""Apple tasting on a stream whose labels the experiment knows, and the lender does not."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groupwise.partial_feedback import AppleTasting
from groupwise.arrays import Vector

Bools = NDArray[np.bool_]


class Stream(NamedTuple):
    """Rows for the model, their bits, labels, and who is in which group."""

    rows: Sequence[dict[str, Any]]
    bits: Vector
    labels: Vector
    membership: Bools
    groups: tuple[str, ...]


class Tasted(NamedTuple):
    """Per group: rounds, regret with payments, and what the lender itself estimates."""

    rounds: Vector
    regret: Vector
    estimate: Vector
    payments: Vector
    baseline: Vector


def taste(lender: AppleTasting, stream: Stream) -> Tasted:
    """Run the lender; losses are expectations over the aggregator's draw, acceptances forced."""
    lost = np.empty(len(stream.labels))
    alone = np.empty(len(stream.labels))
    for t, (row, label) in enumerate(zip(stream.rows, stream.labels.tolist(), strict=True)):
        ticket = lender.predict(row)
        wrong = np.abs(ticket.advice - label)
        lost[t] = 1.0 - label if ticket.wants_label else float(ticket.weights @ wrong)
        alone[t] = 1.0 - label if ticket.wants_label else wrong[-1]  # always_on comes last
        if ticket.wants_label:
            lender.learn(ticket, int(label))
    table = lender.regret()
    best = np.array([best_stump_loss(stream, group) for group in stream.membership.T])
    return Tasted(
        stream.membership.sum(axis=0).astype(np.float64),
        stream.membership.T @ lost - best,
        np.array([table[group]["regret"] for group in stream.groups]),
        np.array([table[group]["payments"] for group in stream.groups]),
        stream.membership.T @ alone - best,
    )


def best_stump_loss(stream: Stream, member: Bools) -> float:
    """The errors of the best stump on a group's rounds."""
    bits, labels = stream.bits[member], stream.labels[member]
    agree = np.abs(bits - labels[:, None]).sum(axis=0)
    constant = labels.sum()
    size = float(len(labels))
    return float(min(constant, size - constant, agree.min(), (size - agree).min()))
