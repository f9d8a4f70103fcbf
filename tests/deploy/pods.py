"""The manifests of deploy/kubernetes, rendered, and as pods of this machine.

`podman kube play` runs them. What podman 4.3 does not know is done here: a StatefulSet
becomes a pod and a volume, a Secret's values are put where it is named. All pods share
the machine's network, so that each gets ports of its own, and no service has a name.
"""

import base64
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from tests import doc_pages
from tests.conftest import eventually, leave_out
from tests.deploy.containers import TARGETS, image, podman, run
from tests.paths import ROOT
from tests.ports import free_port

FOLDER = ROOT / "deploy" / "kubernetes"
PAGE = "docs/kubernetes.md"
PREFIX = "tickthrottle-kube-"
PODS = (
    *("valkey", "feed", "throttle", "gateway-1", "gateway-2"),
    *("archive", "analytics"),
)
"""What is run: a second throttle, the standby, is among the services of compose."""

_REDIS = "redis-server"

Manifest = dict[str, Any]


def rendered(folder: Path) -> list[Manifest]:
    """Return what kustomize makes of a folder; left out where there is no kubectl."""
    if shutil.which("kubectl") is None:
        leave_out("what kustomize makes of the manifests: there is no kubectl")
    return list(yaml.safe_load_all(run("kubectl", "kustomize", folder)))


def blocks(language: str) -> list[str]:
    """Return the blocks of docs/kubernetes.md in a language."""
    return doc_pages.blocks(PAGE, language)


def commands(beginning: str) -> list[str]:
    """Return the page's commands that begin so, each on one line; there are some."""
    return doc_pages.commands(PAGE, beginning)


def secrets() -> list[Manifest]:
    """Return the Secrets that the page's commands make, as they would be sent."""
    chosen = commands("kubectl -n [a-z]+ create secret ")
    done = (run("sh", "-c", f"{line} --dry-run=client -o yaml") for line in chosen)
    return [yaml.safe_load(text) for text in done]


def workloads(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Return what makes pods, by its name."""
    kinds = ("Deployment", "StatefulSet")
    return {m["metadata"]["name"]: m for m in manifests if m["kind"] in kinds}


class Pods:
    """The pods of a rendered folder. ``secrets`` has values that it only names."""

    def __init__(self, manifests: list[Manifest], folder: Path) -> None:
        self._folder = folder
        self._workloads = workloads(manifests)
        self._configs = [m for m in manifests if m["kind"] == "ConfigMap"]
        self._secrets = {
            m["metadata"]["name"]: m["data"] for m in manifests if m["kind"] == "Secret"
        }
        self._ports: dict[tuple[str, str], int] = {}
        for pod in PODS:
            [container] = self._template(pod)["spec"]["containers"]
            for port in container["ports"]:
                self._ports[pod, port["name"]] = free_port()

    def port(self, pod: str, name: str) -> int:
        """Return where a port of a pod is on this machine."""
        return self._ports[pod, name]

    def start(self, *pods: str) -> None:
        """Start pods, and do not wait for them."""
        file = self._folder / f"{'-'.join(pods)}.yaml"
        manifests = [m for pod in pods for m in self._as_pod(pod)]
        file.write_text(yaml.safe_dump_all([*self._configs, *manifests]), "utf-8")
        podman("kube", "play", "--network", "host", file)

    def stop(self, pod: str) -> None:
        """End a pod as its node would, with SIGTERM; it must end by itself, with 0."""
        podman("pod", "stop", "--time", "60", PREFIX + pod)
        state = podman("inspect", "--format", "{{.State.ExitCode}}", self.name(pod))
        assert state == "0", podman("logs", "--tail", "20", self.name(pod))
        podman("pod", "rm", PREFIX + pod)

    def wait(self, pod: str, within_s: float = 60) -> None:
        """Wait until a pod's own probe says that it may be used."""
        [container] = self._template(pod)["spec"]["containers"]
        probe = container.get("startupProbe") or container["readinessProbe"]
        if "httpGet" not in probe:
            eventually(
                lambda: self.execute(pod, "redis-cli", "-p", self._redis(), "ping"), 30
            )
            return
        port = self.port(pod, probe["httpGet"]["port"])
        url = f"http://127.0.0.1:{port}{probe['httpGet']['path']}"
        eventually(lambda: _answers(url), within_s)

    def name(self, pod: str) -> str:
        """Return the name of a pod's container."""
        [container] = self._template(pod)["spec"]["containers"]
        return f"{PREFIX}{pod}-{container['name']}"

    def execute(self, pod: str, *words: str) -> str:
        """Run a command in a pod's container; it must end well."""
        return podman("exec", self.name(pod), *words)

    def logs(self) -> str:
        """Return the end of what each pod said."""
        ends = (podman("logs", "--tail", "15", self.name(pod)) for pod in PODS)
        return "\n".join(f"== {p}\n{end}" for p, end in zip(PODS, ends, strict=True))

    def remove(self) -> None:
        """End everything, and leave nothing."""
        pods = [PREFIX + pod for pod in PODS]
        # At once: nobody waits for a good end.
        podman("pod", "rm", "--force", "--ignore", "--time", "0", *pods)
        for pod in PODS:
            podman("volume", "rm", "--force", PREFIX + pod)

    def _redis(self) -> str:
        return str(self.port("valkey", "redis"))

    def _template(self, pod: str) -> Manifest:
        workload = self._workloads[pod.partition("-")[0]]
        template: Manifest = workload["spec"]["template"]
        return template

    def _as_pod(self, pod: str) -> Iterator[Manifest]:
        workload = self._workloads[pod.partition("-")[0]]
        template = deepcopy(self._template(pod))
        spec = template["spec"]
        [container] = spec["containers"]
        # They are the machine's own: podman has nothing to pass on.
        names = [port["name"] for port in container.pop("ports")]
        ports = {name: self.port(pod, name) for name in names}
        if pod == "valkey":
            # What Debian has of the same server.
            container["image"] = image("services")
            container["command"] = [_REDIS, "--port", self._redis()]
        else:
            [target] = [t for t in TARGETS if container["image"].endswith(f":{t}")]
            container["image"] = image(target)
            container["env"] = list(self._environment(container["env"], ports))
        # Health is asked for by the test; podman would want curl in the image.
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            container.pop(probe, None)
        for volume in spec.get("volumes", ()):
            if "secret" in volume:
                keys = self._secrets[volume.pop("secret")["secretName"]]
                volume["hostPath"] = {"path": str(self._secret_files(keys))}
        for claim in workload["spec"].get("volumeClaimTemplates", ()):
            name = PREFIX + pod
            used = {"claimName": name}
            volumes = spec.setdefault("volumes", [])
            volumes.append(
                {"name": claim["metadata"]["name"], "persistentVolumeClaim": used}
            )
            owner = str(spec["securityContext"]["fsGroup"])
            about = {f"volume.podman.io/{of}": owner for of in ("uid", "gid")}
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "annotations": about},
                "spec": claim["spec"],
            }
        metadata = {"name": PREFIX + pod, "labels": template["metadata"]["labels"]}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _environment(
        self, variables: list[Manifest], ports: dict[str, int]
    ) -> Iterator[Manifest]:
        of_ports = {
            "TICKTHROTTLE_PORT": "http",
            "TICKTHROTTLE_OPERATORS_PORT": "operators",
            "TICKTHROTTLE_METRICS_PORT": "metrics",
        }
        for variable in variables:
            name = variable["name"]
            value = variable.get("value")
            if name in of_ports:
                value = str(ports[of_ports[name]])
            elif value is None:
                named = variable["valueFrom"]["secretKeyRef"]
                value = _text(self._secrets[named["name"]][named["key"]])
                # No service has a name on this machine.
                value = value.replace("//valkey:6379", f"//127.0.0.1:{self._redis()}")
            yield {"name": name, "value": value}
        # Which Kubernetes has in /etc/hosts, and Spark asks for.
        yield {"name": "SPARK_LOCAL_HOSTNAME", "value": "localhost"}

    def _secret_files(self, keys: dict[str, str]) -> Path:
        folder = self._folder / "secret"
        folder.mkdir(exist_ok=True)
        for key, value in keys.items():
            file = folder / key
            file.write_text(_text(value), "utf-8")
            os.chmod(file, 0o644)
        return folder


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


@contextmanager
def running_pods(manifests: list[Manifest], folder: Path) -> Iterator[Pods]:
    """Run the pods until the block ends; nothing of them is left."""
    pods = Pods(manifests, folder)
    pods.remove()
    try:
        pods.start(*PODS)
        yield pods
    finally:
        pods.remove()
