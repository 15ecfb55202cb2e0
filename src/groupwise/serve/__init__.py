"""Predictions over HTTP, labels when they come: ``groupwise serve``.

``store`` is what a store must do, ``sqlite`` and ``postgres`` are two; ``committer`` makes batches
of events durable; ``state`` is a model with its tickets in memory, ``engine`` the same with the way
to the store; ``service`` is all of them, from start to end; ``app`` answers requests.
"""
