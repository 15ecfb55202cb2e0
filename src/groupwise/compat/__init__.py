"""Thin adapters: a Groupwise model as an estimator of river or of scikit-learn."""
