"""Classification with stumps, where the first active group gives the label."""

import itertools
from functools import partial

import numpy as np

from groupwise.experiments.outcome import Outcome, Plan
from groupwise.experiments.trace import Recorder, Trace
from groupwise.experiments.variants import Variant, outcome_of, simulate_all
from groupwise.groups import where
from groupwise.learners import ContextualFTPL
from groupwise.losses import Hamming, Loss, ZeroOne
from groupwise.model import Groupwise
from groupwise.oracles import Stumps
from groupwise.arrays import Vector

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
SETTING_ABOUT = (
    "Contexts are 6 bits; each of four groups holds a context with chance 0.25 and has a stump of "
    "its own. The first active group’s stump gives the label, another stump where none is active; "
    "5 % of the labels are flipped. One label, or three, each with stumps of its own. Some of the "
    "labels (none, 15 %, all) are adaptive instead: the opposite of what was last played on the "
    "context. With labels that are all adaptive nothing can be learned, so there the claim is that "
    "regret stays below the certificate. "
)


def variants_of(setting: str) -> list[Variant]:
    """One label and three, with each share of adaptive labels."""
    return [
        Variant(
            f"{setting}-{labels}-{round(100 * adaptive)}",
            f"{labels} label{'s' if labels > 1 else ''}, {round(100 * adaptive)} % adaptive",
            partial(simulate, setting, labels, adaptive),
            "third" if adaptive < 1.0 else "certificate",
        )
        for labels in LABELS
        for adaptive in ADAPTIVE
    ]


def run_setting(setting: str, plan: Plan) -> Outcome:
    """All variants in one setting."""
    variants = variants_of(setting)
    seeds = SEEDS[: plan.seeds]
    return outcome_of(variants, simulate_all(variants, seeds, plan.rounds or ROUNDS, plan.jobs))


def labeller(setting: str, labels: int, seed: int, always_on: bool = True) -> Groupwise:
    """The model."""
    oracle = Stumps()
    contexts = CONTEXTS if setting == "transductive" else oracle.separator(BITS)
    loss: Loss = ZeroOne() if labels == 1 else Hamming(labels)
    return Groupwise(
        [where(f"group{g}", "==", 1) for g in range(GROUPS)],
        ContextualFTPL(oracle, contexts, setting),
        loss=loss,
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
    recorder = Recorder(model, rounds)
    stumps = stump_table().astype(int)
    chosen = np.array([rng.permutation(2 * BITS)[: GROUPS + 1] for _ in range(labels)])
    cells = CONTEXTS.astype(int).tolist()
    last: dict[int, list[int]] = {}
    for _ in range(rounds):
        context = int(rng.integers(len(CONTEXTS)))
        member = rng.random(GROUPS) < MEMBERSHIP
        active = int(member.argmax()) if member.any() else GROUPS
        flipped = rng.random(labels) < NOISE
        truth = stumps[chosen[:, active], context] ^ flipped
        if rng.random() < adaptive and context in last:
            truth = 1 - np.array(last[context])
        row = dict(zip(FIELDS, cells[context], strict=True))
        row |= {f"group{g}": int(member[g]) for g in range(GROUPS)}
        ticket = model.predict(row)
        last[context] = np.atleast_1d(ticket.prediction).tolist()
        model.learn(ticket, int(truth[0]) if labels == 1 else truth)
        recorder.after_round()
    return recorder.trace()
