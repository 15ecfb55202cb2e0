"""Figures for Prometheus."""

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from groupwise.serve.engine import Engine
from groupwise.serve.looks import Looks
from groupwise.serve.service import Service

GROUPS = 100
"""At most so many groups of a model have figures of their own: the largest."""
LAGS = (1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400)
COMMITS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)


class Metrics:
    """What ``/metrics`` shows."""

    kind = CONTENT_TYPE_LATEST

    def __init__(self, service: Service, looks: Looks) -> None:
        self._service = service
        self._looks = looks
        self._registry = CollectorRegistry()
        self._commit = Histogram(
            "groupwise_commit_seconds",
            "Time to make a batch of events durable",
            buckets=COMMITS,
            registry=self._registry,
        )
        self._batch = Histogram(
            "groupwise_commit_events",
            "Events that were made durable together",
            buckets=(1, 2, 5, 10, 20, 50, 100, 500, 2_000),
            registry=self._registry,
        )
        self._lag = Histogram(
            "groupwise_label_lag_seconds",
            "Time from a prediction to its label",
            ["model"],
            buckets=LAGS,
            registry=self._registry,
        )
        self._registry.register(self)
        service.opened = self._opened
        service.observe = self._observe

    def _opened(self, engine: Engine) -> None:
        engine.counts.lag = self._lag.labels(engine.record.name).observe

    def _observe(self, seconds: float, events: int) -> None:
        self._commit.observe(seconds)
        self._batch.observe(events)

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """The figures that are looked up when they are asked for."""
        engines = [*self._service.engines.values()]
        counters: dict[str, Any] = {
            "predictions": CounterMetricFamily(
                "groupwise_predictions", "Tickets issued since the start", labels=["model"]
            ),
            "repeated": CounterMetricFamily(
                "groupwise_repeated", "Predictions asked for again", labels=["model"]
            ),
            "labels": CounterMetricFamily(
                "groupwise_labels", "Labels by what came of them", labels=["model", "outcome"]
            ),
        }
        gauges = {
            name: GaugeMetricFamily(f"groupwise_{name}", text, labels=["model"])
            for name, text in (
                ("outstanding", "Tickets without a label"),
                ("snapshot_age_seconds", "Time since the last snapshot"),
                ("unsnapped_events", "Events after the last snapshot"),
            )
        }
        figures = {
            name: GaugeMetricFamily(f"groupwise_{name}", text, labels=["model", "group"])
            for name, text in (
                ("regret", "Regret of a group, when it was last computed"),
                ("certificate", "What its regret is at most"),
                ("rounds", "Its settled rounds"),
            )
        }
        for engine in engines:
            name, counts = engine.record.name, engine.counts
            counters["predictions"].add_metric([name], counts.predictions)
            counters["repeated"].add_metric([name], counts.repeated)
            for outcome, count in counts.labels.items():
                counters["labels"].add_metric([name, outcome], count)
            gauges["outstanding"].add_metric([name], engine.outstanding)
            gauges["unsnapped_events"].add_metric([name], engine.unsnapped)
            if engine.snapshots:
                age = time.time() - engine.snapshots[0].at
                gauges["snapshot_age_seconds"].add_metric([name], age)
            table = self._looks.last(engine) or {"rows": []}
            rows = sorted(table["rows"], key=lambda row: -row["rounds"])[:GROUPS]
            for row in rows:
                for key, metric in figures.items():
                    if row[key] is not None:
                        metric.add_metric([name, row["group"]], row[key])
        yield from (*counters.values(), *gauges.values(), *figures.values())
