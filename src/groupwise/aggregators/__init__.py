"""Sleeping-experts algorithms that turn the awake experts' advice into one play."""

from groupwise.aggregators.adanormalhedge import AdaNormalHedge
from groupwise.aggregators.specialists import Specialists

__all__ = ["AdaNormalHedge", "Specialists"]
