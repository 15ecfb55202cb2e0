"""Classification in the transductive setting."""

from groupwise.experiments.classification import SEEDS, SETTING_ABOUT, run_setting
from groupwise.experiments.outcome import Outcome, Plan

__all__ = ["ABOUT", "SEEDS", "TITLE", "run"]

TITLE = "Classification with every context known in advance"
ABOUT = SETTING_ABOUT + (
    "Here S holds all 64 contexts, which get fake samples with Laplace noise every round."
)


def run(plan: Plan) -> Outcome:
    """One label and three, with and without adaptive labels."""
    return run_setting("transductive", plan)
