"""Classification in the separator setting."""

from groupwise.experiments.classification import SEEDS, SETTING_ABOUT, run_setting
from groupwise.experiments.outcome import Outcome, Plan

__all__ = ["ABOUT", "SEEDS", "TITLE", "run"]

TITLE = "Classification with a separator of the class"
ABOUT = SETTING_ABOUT + (
    "Here S is the separator that the oracle names: 4 contexts that tell all 14 stumps apart; "
    "contexts themselves may be anything."
)


def run(plan: Plan) -> Outcome:
    """One label and three, with and without adaptive labels."""
    return run_setting("separator", plan)
