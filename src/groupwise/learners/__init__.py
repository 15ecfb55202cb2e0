"""No-regret learners: one per group."""

from groupwise.learners.foreign import Foreign
from groupwise.learners.ridge import Ridge

__all__ = ["Foreign", "Ridge"]
