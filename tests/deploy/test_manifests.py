"""The manifests for Kubernetes: as its schemas want them, shut in, and of one piece."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from cli.command_line import app
from tests.deploy.pods import (
    FOLDER,
    Manifest,
    blocks,
    commands,
    rendered,
    secrets,
    workloads,
)
from tests.test_docs import variables

FOLDERS = sorted(path.parent.name for path in FOLDER.glob("*/kustomization.yaml"))
OLDEST = "1.30"
BY_HAND = {"tickthrottle-operators", "tickthrottle-redis"}
"""Secrets that the page has made by hand, for who has an own Redis."""
OF_OTHERS = {"PYSPARK_PYTHON"}
"""Variables that are no settings of ours, but of Spark."""


@pytest.fixture(scope="module", params=FOLDERS)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    """What kustomize makes of a folder."""
    return rendered(FOLDER / request.param)


def check(manifest: Manifest) -> None:
    """Hold a manifest to the schema of its kind: no unknown field, no wrong value."""
    for version in (OLDEST, kubernetes_validate.latest_version()):
        kubernetes_validate.validate(manifest, version, strict=True)


def specs(manifests: list[Manifest]) -> Iterator[dict[str, Any]]:
    """Yield what is said of each pod."""
    for workload in workloads(manifests).values():
        yield workload["spec"]["template"]["spec"]


def named(manifests: list[Manifest], kind: str) -> set[str]:
    """Return the names of a kind."""
    return {m["metadata"]["name"] for m in manifests if m["kind"] == kind}


def test_kubernetes_would_take_each_manifest(manifests: list[Manifest]) -> None:
    """By the schemas of an older version and of the newest."""
    assert len(workloads(manifests)) >= 4
    for manifest in manifests:
        check(manifest)


def test_a_pod_may_do_little(manifests: list[Manifest]) -> None:
    """As the profile `restricted` wants it, and a root that is only read."""
    for spec in specs(manifests):
        pod = spec["securityContext"]
        assert pod["runAsNonRoot"]
        assert pod["runAsUser"] > 0
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not spec["enableServiceLinks"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        # Only Spark's driver asks Kubernetes for something.
        has_account = "serviceAccountName" in spec
        assert spec["automountServiceAccountToken"] == has_account
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"memory"} == container["resources"]["limits"].keys()
            assert {"cpu", "memory"} == container["resources"]["requests"].keys()
        for volume in spec.get("volumes", ()):
            assert volume.keys() & {"emptyDir", "secret", "configMap"}
            assert "sizeLimit" in volume.get("emptyDir", {"sizeLimit": ""})


def test_what_a_manifest_names_is_there(manifests: list[Manifest]) -> None:
    """ConfigMaps, Secrets, accounts, volumes, ports, and pods by their labels."""
    configs = named(manifests, "ConfigMap")
    keys = BY_HAND | named(manifests, "Secret")
    for spec in specs(manifests):
        if "serviceAccountName" in spec:
            assert spec["serviceAccountName"] in named(manifests, "ServiceAccount")
        [container] = spec["containers"]
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = container.get(probe, {})
            for how in ("httpGet", "tcpSocket"):
                assert how not in asked or asked[how]["port"] in ports
        assert any(f"{p}Probe" in container for p in ("startup", "readiness"))
        for source in container.get("envFrom", ()):
            assert source["configMapRef"]["name"] in configs
        for variable in container.get("env", ()):
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            assert reference is None or reference["name"] in keys
        for volume in spec.get("volumes", ()):
            if "secret" in volume:
                assert volume["secret"]["secretName"] in keys
            if "configMap" in volume:
                assert volume["configMap"]["name"] in configs
    pods = [
        w["spec"]["template"]["metadata"]["labels"]
        for w in workloads(manifests).values()
    ]
    for manifest in manifests:
        spec = manifest.get("spec", {})
        if manifest["kind"] in ("PodDisruptionBudget", "NetworkPolicy"):
            wanted = spec.get("selector", spec.get("podSelector"))["matchLabels"]
        elif manifest["kind"] == "Service":
            wanted = spec["selector"]
        else:
            continue
        # Spark puts this label on executors.
        assert wanted == {"spark-role": "executor"} or any(
            wanted.items() <= labels.items() for labels in pods
        )
    for scaler in (m for m in manifests if m["kind"] == "HorizontalPodAutoscaler"):
        assert scaler["spec"]["scaleTargetRef"]["name"] in workloads(manifests)


def test_a_workload_starts_a_command_with_settings_that_exist(
    manifests: list[Manifest],
) -> None:
    """Of the program, or of the server that is somebody else's."""
    settings = {name for name, _ in variables()} | OF_OTHERS
    configs = [m["data"] for m in manifests if m["kind"] == "ConfigMap"]
    told = {name for data in configs for name in data if name != "executor.yaml"}
    assert told <= settings
    for spec in specs(manifests):
        [container] = spec["containers"]
        if "command" in container:
            continue
        done = CliRunner().invoke(app, [*container["args"], "--help"])
        assert done.exit_code == 0, done.output
        names = {v["name"] for v in container["env"]}
        assert {n for n in names if not n.startswith("POD_")} <= settings


def test_the_pages_overlay_is_one(tmp_path: Path) -> None:
    """Its settings, its image and its namespace arrive, at every workload."""
    # Of a folder outside there must be a way that goes up from here.
    base = FOLDER / "base"
    up = "../" * (len(tmp_path.parts) - 1)
    text, servers, ingress = blocks("yaml")
    address = "https://git.example/tickthrottle//deploy/kubernetes/base?ref=v0.1.0"
    assert address in text
    overlay = text.replace(address, f"{up}{str(base)[1:]}")
    (tmp_path / "kustomization.yaml").write_text(overlay, "utf-8")
    (tmp_path / "servers.yaml").write_text(servers, "utf-8")
    manifests = [*rendered(tmp_path), yaml.safe_load(ingress)]
    for manifest in manifests:
        check(manifest)
    [config] = [m for m in manifests if m["kind"] == "ConfigMap"]
    assert config["data"]["TICKTHROTTLE_SERVED_MARKET"] == "KOSPI"
    assert "TICKTHROTTLE_LOG_FORMAT" in config["data"]
    assert workloads(manifests)["analytics"]["spec"]["replicas"] == 0
    for name, workload in workloads(manifests).items():
        assert workload["metadata"]["namespace"] == "prices"
        [container] = workload["spec"]["template"]["spec"]["containers"]
        assert container["image"].startswith("registry.example/tickthrottle:"), name
        assert (
            container["envFrom"][0]["configMapRef"]["name"]
            == (config["metadata"]["name"])
        )


def test_the_pages_commands_make_the_secrets_that_manifests_name() -> None:
    """With the keys that are asked for, and a token that differs each time."""
    made = secrets()
    for secret in made:
        check(secret)
    names = {m["metadata"]["name"]: set(m["data"]) for m in made}
    assert names.keys() == BY_HAND
    for spec in specs(rendered(FOLDER / "base")):
        [container] = spec["containers"]
        for variable in container["env"]:
            if "valueFrom" in variable:
                reference = variable["valueFrom"]["secretKeyRef"]
                assert reference["key"] in names[reference["name"]]
    tokens = [m["data"]["token"] for m in made if "token" in m["data"]]
    assert len(set(tokens)) == len(tokens) >= 2


def test_the_pages_other_commands_are_about_what_there_is() -> None:
    """Folders, and objects by their kinds and names."""
    trial = rendered(FOLDER / "trial")
    for line in commands("kubectl apply -k"):
        assert (FOLDER.parent.parent / shlex.split(line)[-1]).is_dir()
    assert commands("kubectl create namespace")[0].split()[-1] in (
        named(trial, "Namespace")
    )
    kinds = {
        "deployment": "Deployment",
        "statefulset": "StatefulSet",
        "service": "Service",
    }
    for line in commands("kubectl -n tickthrottle (exec|rollout|port-forward)"):
        [word] = [w for w in line.split() if "/" in w]
        kind, _, name = word.partition("/")
        assert name in named(trial, kinds[kind])
    peers = str([m for m in trial if m["kind"] == "NetworkPolicy"])
    for line in commands("kubectl label"):
        label, _, value = line.split()[-1].partition("=")
        assert str({label: value}) in peers
