"""The paper: its experiments, tables and figures next to what was published, and what goes beyond.

``reproduction.reproduce`` makes the published tables anew, ``beyond.run`` the experiments that the
paper does not have; ``groupwise reproduce`` calls both.
"""
