"""No-regret learners: one per group."""

from groupwise.learners.contextual_ftpl import ContextualFTPL
from groupwise.learners.foreign import Foreign
from groupwise.learners.ftpl import FTPL
from groupwise.learners.logistic import Logistic
from groupwise.learners.portfolio import portfolio
from groupwise.learners.ridge import Ridge
from groupwise.learners.rosters import NamedGroup

__all__ = ["FTPL", "ContextualFTPL", "Foreign", "Logistic", "NamedGroup", "Ridge", "portfolio"]
