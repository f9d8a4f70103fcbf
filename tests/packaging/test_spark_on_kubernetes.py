"""The job as a driver on Kubernetes: what it asks of the API server, for executors.

The server here is not Kubernetes: it takes every request and says that all is well. So
this shows that Spark understands the settings and what it makes of them, no more.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import kubernetes_validate
import pytest

from tests.conftest import eventually
from tests.deploy.pods import FOLDER, rendered, workloads
from tests.e2e.processes import running
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.spark,
]

NAMESPACE = "prices"
POD = {
    "POD_NAME": "throttle-0",
    "POD_NAMESPACE": NAMESPACE,
    "POD_IP": "127.0.0.1",
}


class Requests(BaseHTTPRequestHandler):
    """Answers as the API server of Kubernetes would, if it had room for everything."""

    protocol_version = "HTTP/1.1"
    pods: ClassVar[list[dict[str, Any]]] = []
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Say that the driver's pod is there, and that nothing else is."""
        if self.path.startswith(f"/api/v1/namespaces/{NAMESPACE}/pods/"):
            name = self.path.rpartition("/")[2].partition("?")[0]
            metadata = {"name": name, "namespace": NAMESPACE, "uid": "1"}
            self._answer({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
        else:
            metadata = {"resourceVersion": "1"}
            self._answer(
                {"apiVersion": "v1", "kind": "PodList", "metadata": metadata}
                | {"items": []}
            )

    def do_POST(self) -> None:
        """Take what shall be made, and say that it is."""
        made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.paths.append(self.path)
        if made["kind"] == "Pod":
            self.pods.append(made)
        self._answer(made, 201)

    def do_DELETE(self) -> None:
        """Say that it is gone."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer({"apiVersion": "v1", "kind": "Status", "status": "Success"})

    do_PUT = do_PATCH = do_POST

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""

    def _answer(self, content: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def api_server() -> Iterator[str]:
    """Answer until the block ends; the value is the address."""
    Requests.pods.clear()
    Requests.paths.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Requests) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def environment() -> dict[str, str]:
    """Return what the driver is told, in the pod that it would be in."""
    throttle = workloads(rendered(FOLDER / "spark"))["throttle"]
    [container] = throttle["spec"]["template"]["spec"]["containers"]
    told: dict[str, str] = {}
    for variable in container["env"]:
        if variable["name"] in POD:
            told[variable["name"]] = POD[variable["name"]]
        elif "value" in variable:
            # Kubernetes knows the variables that stand before.
            value = re.sub(r"\$\((\w+)\)", lambda m: told[m[1]], variable["value"])
            told[variable["name"]] = value
    return told


def test_spark_asks_for_executors_that_kubernetes_would_take(
    redis_url: str, tmp_path: Path
) -> None:
    """As many and as large as told, shut in, with a way back to the driver."""
    told = environment()
    port = free_port()
    conf = json.loads(told["TICKTHROTTLE_SPARK_CONF"])
    wanted = int(conf["spark.executor.instances"])
    # The ports of a pod are its own, those of this machine are not.
    conf |= {
        "spark.driver.port": str(port),
        "spark.blockManager.port": str(free_port()),
        "spark.kubernetes.executor.podTemplateFile": str(
            FOLDER / "spark" / "executor.yaml"
        ),
    }
    told["TICKTHROTTLE_SPARK_CONF"] = json.dumps(conf)
    told.pop("TICKTHROTTLE_METRICS_PORT")
    with api_server() as address:
        told["TICKTHROTTLE_SPARK_MASTER"] = f"k8s://{address}"
        with running(
            tmp_path,
            "throttle",
            REDIS_URL=redis_url,
            TICKTHROTTLE_STATE_DIR=str(tmp_path / "state"),
            PYSPARK_PYTHON=told.pop("PYSPARK_PYTHON"),
            **told,
        ) as job:

            def has_asked() -> bool:
                assert job.process.poll() is None, job.log()[-3_000:]
                return len(Requests.pods) >= wanted

            eventually(has_asked, 60)
    assert f"/api/v1/namespaces/{NAMESPACE}/pods" in Requests.paths
    for pod in Requests.pods[:wanted]:
        kubernetes_validate.validate(
            pod, kubernetes_validate.latest_version(), strict=True
        )
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = spec["containers"]
        assert container["image"] == "localhost/tickthrottle:executor"
        assert container["resources"]["requests"] == {"cpu": "1", "memory": "2048Mi"}
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        driver = {v["name"]: v.get("value") for v in container["env"]}
        assert f"@127.0.0.1:{port}" in str(driver["SPARK_DRIVER_URL"])
        assert pod["metadata"]["labels"]["spark-role"] == "executor"
        assert pod["metadata"]["ownerReferences"][0]["name"] == "throttle-0"
