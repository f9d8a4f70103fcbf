"""Which pod may reach which, by the manifests: nobody more than it needs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.deploy.pods import FOLDER, Manifest, rendered, workloads
from tests.deploy.test_manifests import FOLDERS

Labels = Mapping[str, str]
DNS, REDIS = ({(53, "UDP"), (53, "TCP")}, {(6379, "TCP")})
EXECUTOR = {"spark-role": "executor"}
"""What Spark puts on the pods that it makes of its template."""


@dataclass(frozen=True)
class Pods:
    """The pods of a folder, by name: their labels and ports; and the policies."""

    labels: Mapping[str, Labels]
    ports: Mapping[str, Mapping[str, int]]
    policies: list[dict[str, Any]]

    def rules(self, pod: str, direction: str) -> Iterator[dict[str, Any]]:
        """Yield what policies allow a pod: the rules of ``ingress`` or ``egress``."""
        for policy in self.policies:
            if selects(policy["podSelector"], self.labels[pod]):
                yield from policy.get(direction, ())

    def open_ports(
        self, pod: str, direction: str, peer: str, target: str
    ) -> set[tuple[int, str]]:
        """Return the ports of ``target`` that rules for ``pod`` and ``peer`` open."""
        side = {"ingress": "from", "egress": "to"}[direction]
        return {
            (self.ports[target].get(port["port"], port["port"]), protocol_of(port))
            for rule in self.rules(pod, direction)
            for port in rule["ports"]
            if any(
                "podSelector" in other
                and selects(other["podSelector"], self.labels[peer])
                for other in rule.get(side, ())
            )
        }

    def reached(self) -> dict[tuple[str, str], set[tuple[int, str]]]:
        """Return the ports at which pods reach each other, where there are any."""
        found = {
            (one, other): self.open_ports(one, "egress", other, other)
            & self.open_ports(other, "ingress", one, other)
            for one in self.labels
            for other in self.labels
        }
        return {pair: ports for pair, ports in found.items() if ports}


def protocol_of(port: Mapping[str, Any]) -> str:
    """Return a port's protocol."""
    return str(port.get("protocol", "TCP"))


def selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Say whether a selector means a pod with these labels, as Kubernetes does."""
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "NotIn"
        if labels.get(expression["key"]) in expression["values"]:
            return False
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def pods_of(manifests: list[Manifest]) -> Pods:
    """Return what there is in a folder; executors, too, where it has a template."""
    labels: dict[str, Labels] = {}
    ports: dict[str, Mapping[str, int]] = {}
    for name, workload in workloads(manifests).items():
        template = workload["spec"]["template"]
        labels[name] = template["metadata"]["labels"]
        [container] = template["spec"]["containers"]
        ports[name] = {p["name"]: p["containerPort"] for p in container["ports"]}
    for config in (m["data"] for m in manifests if m["kind"] == "ConfigMap"):
        if "executor.yaml" in config:
            template = yaml.safe_load(config["executor.yaml"])
            labels["executor"] = template["metadata"]["labels"] | EXECUTOR
            ports["executor"] = {}
    policies = [m["spec"] for m in manifests if m["kind"] == "NetworkPolicy"]
    return Pods(labels, ports, policies)


@pytest.fixture(params=FOLDERS)
def pods(request: pytest.FixtureRequest) -> Pods:
    """The pods of a folder."""
    return pods_of(rendered(FOLDER / request.param))


def test_every_pod_is_shut_in_both_ways(pods: Pods) -> None:
    """What no rule allows is not allowed, to it and from it."""
    assert len(pods.labels) >= 4
    for name, labels in pods.labels.items():
        types = {
            kind
            for policy in pods.policies
            if selects(policy["podSelector"], labels)
            for kind in policy["policyTypes"]
        }
        assert types == {"Ingress", "Egress"}, name


def test_a_pod_asks_for_names_and_redis_and_nothing_else(pods: Pods) -> None:
    """All but Spark's driver, which asks Kubernetes, and executors, which ask it."""
    for name in pods.labels:
        rules = list(pods.rules(name, "egress"))
        opened = {
            (port["port"], protocol_of(port)) for r in rules for port in r["ports"]
        }
        if name == "valkey":
            assert opened == set()
        elif "executor" not in pods.labels or name not in ("throttle", "executor"):
            assert opened == DNS | REDIS, name
        is_driver = "executor" in pods.labels and name == "throttle"
        assert all("to" in rule for rule in rules) or is_driver


def test_pods_of_the_trial_reach_its_valkey_and_no_other_pod() -> None:
    """By a rule at either end."""
    pods = pods_of(rendered(FOLDER / "trial"))
    others = pods.labels.keys() - {"valkey"}
    assert pods.reached() == {(name, "valkey"): REDIS for name in others}


def test_a_driver_and_its_executors_reach_each_other() -> None:
    """At the ports that the driver's settings name."""
    blocks = {(7079, "TCP")}
    assert pods_of(rendered(FOLDER / "spark")).reached() == {
        ("executor", "throttle"): {(7078, "TCP"), *blocks},
        ("throttle", "executor"): blocks,
        ("executor", "executor"): blocks,
    }
