"""Regret: the ledger of losses, the best model in hindsight, and the certificates."""
