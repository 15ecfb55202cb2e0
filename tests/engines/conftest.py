"""A Ray cluster that the tests of a file share: starting one takes seconds."""

import logging

import pytest


class Nodes:
    """A cluster of one CPU a node, as many nodes as asked for."""

    def __init__(self, ray, cluster):
        self.ray, self.cluster, self.others = ray, cluster, []

    def have(self, count):
        """Add or remove nodes until there are so many."""
        while len(self.others) + 1 < count:
            about = {"num_cpus": 1, "object_store_memory": STORE}
            self.others.append(self.cluster.add_node(wait=False, **about))
        while len(self.others) + 1 > count:
            self.remove()
        self.cluster.wait_for_nodes(PATIENT)

    def remove(self):
        """Take a node away without a word to anybody."""
        self.cluster.remove_node(self.others.pop(), allow_graceful=False)


STORE = 120_000_000
PATIENT = 300.0
"""Seconds for nodes to come and to go: the machine may be busy."""
UNHURRIED = {
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_memory_monitor_refresh_ms": "0",  # of all programs on the machine together
}
"""What Ray takes for lost only much later, where it does not answer."""


@pytest.fixture(autouse=True)
def one_after_another(request):
    """Tests that start clusters are one group, for one worker of pytest-xdist: is it so?"""
    if getattr(request.config.option, "loadgroup", False):
        for mark in request.node.iter_markers("xdist_group"):
            assert request.node.nodeid.endswith(f"@{mark.args[0]}")


@pytest.fixture(scope="module")
def unhurried():
    """The settings of clusters that this process starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in UNHURRIED.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def nodes(unhurried):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield Nodes(ray, cluster)
    ray.shutdown()
    cluster.shutdown()
