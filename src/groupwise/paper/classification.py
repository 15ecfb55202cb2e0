"""Classification with stumps, where the first active group gives the label."""

import itertools
from functools import partial

import numpy as np

import groupwise as gw
from groupwise.arrays import Vector
from groupwise.paper.claims import Outcome, Request, Study
from groupwise.paper.variants import Following, Trace, Variant, outcome_of

SEEDS = tuple(range(1_000, 1_020))
"""Fresh: nothing was tuned on them."""
ROUNDS = 3_000
BITS = 6
GROUPS = 4
MEMBERSHIP = 0.25
NOISE = 0.05
FIELDS = [f"bit{i}" for i in range(BITS)]
CONTEXTS = np.array(list(itertools.product([0.0, 1.0], repeat=BITS)))
LABELS = (1, 3)
ADAPTIVE = (0.0, 0.15, 1.0)
ABOUT = (
    "Contexts are 6 bits; each of four groups holds a context with chance 0.25 and has a stump of "
    "its own. The first active group’s stump gives the label, another stump where none is active; "
    "5 % of the labels are flipped. One label, or three, each with stumps of its own. Some of the "
    "labels (none, 15 %, all) are adaptive instead: the opposite of what was last played on the "
    "context. With labels that are all adaptive nothing can be learned, so there the claim is that "
    "regret stays below the certificate. "
)


def run(setting: str, request: Request) -> Outcome:
    """One label and three, with each share of adaptive labels."""
    variants = [
        Variant(
            f"{setting}-{labels}-{round(100 * adaptive)}",
            f"{labels} label{'s' if labels > 1 else ''}, {round(100 * adaptive)} % adaptive",
            partial(simulate, setting, labels, adaptive),
            "third" if adaptive < 1.0 else "certificate",
        )
        for labels in LABELS
        for adaptive in ADAPTIVE
    ]
    return outcome_of(variants, request, SEEDS, ROUNDS)


def labeller(setting: str, labels: int, seed: int, always_on: bool = True) -> gw.Groupwise:
    """The model."""
    oracle = gw.oracles.Stumps()
    contexts = CONTEXTS if setting == "transductive" else oracle.separator(BITS)
    return gw.Groupwise(
        [gw.where(f"group{g}", "==", 1) for g in range(GROUPS)],
        gw.learners.ContextualFTPL(oracle, contexts, setting),
        loss=gw.losses.ZeroOne() if labels == 1 else gw.losses.Hamming(labels),
        features=FIELDS,
        always_on=always_on,
        seed=seed,
    )


def stump_table() -> Vector:
    """What the 2 · 6 stumps on a single bit say on every context."""
    return np.array([column for bit in CONTEXTS.T for column in (bit, 1.0 - bit)])


def simulate(
    setting: str, labels: int, adaptive: float, seed: int, rounds: int, always_on: bool = True
) -> Trace:
    """One run."""
    rng = np.random.default_rng(seed)
    model = labeller(setting, labels, seed, always_on)
    following = Following(model, rounds)
    stumps = stump_table().astype(int)
    chosen = np.array([rng.permutation(2 * BITS)[: GROUPS + 1] for _ in range(labels)])
    cells = CONTEXTS.astype(int).tolist()
    last: dict[int, list[int]] = {}
    for _ in following:
        context = int(rng.integers(len(CONTEXTS)))
        member = rng.random(GROUPS) < MEMBERSHIP
        active = int(member.argmax()) if member.any() else GROUPS
        truth = stumps[chosen[:, active], context] ^ (rng.random(labels) < NOISE)
        if rng.random() < adaptive and context in last:
            truth = 1 - np.array(last[context])
        groups = {f"group{g}": int(member[g]) for g in range(GROUPS)}
        ticket = model.predict(dict(zip(FIELDS, cells[context], strict=True)) | groups)
        last[context] = np.atleast_1d(ticket.prediction).tolist()
        model.learn(ticket, int(truth[0]) if labels == 1 else truth)
    return following.trace()


TRANSDUCTIVE = Study(
    "Classification with every context known in advance",
    f"{ABOUT}Here S holds all 64 contexts, which get fake samples with Laplace noise every round.",
    partial(run, "transductive"),
)
SEPARATOR = Study(
    "Classification with a separator of the class",
    f"{ABOUT}Here S is the separator that the oracle names: 4 contexts that tell all 14 stumps "
    "apart; contexts themselves may be anything.",
    partial(run, "separator"),
)
