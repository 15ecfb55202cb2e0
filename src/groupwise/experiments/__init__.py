"""The experiments beyond the paper's tables: what ``groupwise reproduce <name>`` runs.

One folder each, with the figures that are expected in ``expected.json``. An experiment is a module
with ``TITLE``, ``ABOUT`` (a paragraph on what it shows), ``SEEDS``, and ``run(plan) -> Outcome``.
"""

from groupwise.experiments.outcome import Check, Outcome, Plan
from groupwise.experiments.running import NAMES, run

__all__ = ["NAMES", "Check", "Outcome", "Plan", "run"]
