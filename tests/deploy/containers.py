"""The services of deploy/compose.yaml as containers of this machine.

The images are built from a base that is here already; what others make (Redis, Caddy,
Prometheus) comes from Debian's packages. Containers have a network of their own, with
the names that the file gives them.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

import pytest

from tests.conftest import eventually, skip_or_fail
from tests.doc_pages import commands, text_of
from tests.paths import ROOT
from tests.ports import free_port

BASE = "localhost/debian:bookworm"
PROJECT = "tickthrottle-test"
TARGETS = ("all", "gateway")
SERVICES = (
    *("valkey", "secrets", "throttle-1", "throttle-2"),
    *("gateway-1", "gateway-2", "feed", "archive", "proxy", "prometheus"),
)
"""What is run at once. A third Spark, the analytics job, comes when asked for."""

PORTS = ("REDIS", "HTTPS", "PROMETHEUS")
PAGE = "docs/containers.md"
HERE = ROOT / "tests" / "deploy"

# Health is asked for by the test: podman would have systemd do it. Networks want
# iptables, which not every PATH has.
ENVIRONMENT = {
    **os.environ,
    "DISABLE_HC_SYSTEMD": "true",
    "PATH": f"{os.environ['PATH']}:/usr/sbin",
}


def image(name: str) -> str:
    """Return the name of a test's image."""
    return f"localhost/{PROJECT}:{name}"


def run(*words: str | Path, within_s: float = 120) -> str:
    """Run a command; return what it printed. It must end well, and in time."""
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=within_s,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout[-3_000:]}"
    return done.stdout.strip()


def podman(*words: str | Path, within_s: float = 120) -> str:
    """Run podman."""
    return run("podman", *words, within_s=within_s)


def need_containers() -> None:
    """Skip where containers cannot be run, or where there is no base to build on."""
    if shutil.which("podman") is None:
        skip_or_fail("there is no podman (on Debian: apt install podman)")
    try:
        podman("image", "exists", BASE)
    except AssertionError:
        skip_or_fail(f"podman has no image {BASE}; docs/testing.md says how to make it")
    try:
        podman("run", "--rm", "--network", "podman", BASE, "true")
    except AssertionError as error:
        skip_or_fail(f"podman has no networks (iptables, aardvark-dns): {error}")


def digest_of_base() -> str:
    """Return the base's name with its digest, by the page's command."""
    [line] = commands(PAGE, "podman image inspect")
    return run(*shlex.split(line)[:-1], BASE)


def _build_images(folder: Path) -> None:
    """Build all images, as docs/containers.md says."""
    options = [
        *("--format", "docker", "--network", "host"),
        *("--build-arg", f"BASE={digest_of_base()}"),
    ]
    packed = [*options, "--build-arg", "PREPARE=no", *pip_options(folder)]
    for line in commands(PAGE, "podman build"):
        program, build, *words = shlex.split(line)
        words = [word.replace("tickthrottle:", image("")) for word in words]
        run(program, build, *packed, *words, within_s=1_200)
    file = ("--file", str(HERE / "services.Containerfile"))
    tag = ("--tag", image("services"))
    podman("build", *options, *tag, *file, str(folder), within_s=600)


def build_systemd() -> None:
    """Build a machine with systemd on the image that has everything."""
    options = ("--format", "docker", "--network", "host")
    base = ("--build-arg", f"BASE={image('all')}")
    file = HERE / "systemd.Containerfile"
    tag = ("--file", str(file), "--tag", image("systemd"))
    podman("build", *options, *base, *tag, str(HERE), within_s=600)


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All images, built from here, once."""
    need_containers()
    _build_images(tmp_path_factory.mktemp("images"))


def pip_options(folder: Path) -> list[str]:
    """Have pip in a build ask whom this machine's pip asks, and keep what it got."""
    pip = (sys.executable, "-m", "pip")
    settings = dict(
        re.findall(
            r"^[\w:]*\.(cert|index-url)='(.+)'$", run(*pip, "config", "list"), re.M
        )
    )
    options = []
    if "cert" in settings:
        options += ["--volume", f"{settings['cert']}:/run/pip-ca.pem:ro"]
        settings["cert"] = "/run/pip-ca.pem"
    lines = [f"{name} = {value}\n" for name, value in settings.items()]
    file = folder / "pip.conf"
    file.write_text("".join(["[global]\n", *lines]), "utf-8")
    options += ["--volume", f"{file}:/etc/pip.conf:ro"]
    try:
        cache = Path(run(*pip, "cache", "dir"))
        cache.mkdir(parents=True, exist_ok=True)
        options += ["--volume", f"{cache}:/root/.cache/pip"]
    except AssertionError:
        # It keeps nothing here.
        pass
    return options


def _end() -> str:
    """Return the command by which the page ends what it has started."""
    [command] = re.findall(r"`(docker compose [^`]* down)`", text_of(PAGE))
    return str(command)


class Containers:
    """The running services."""

    def __init__(self, folder: Path) -> None:
        self.ports = {name: free_port() for name in PORTS}
        self._file = folder / "here.yaml"
        words = {f"{name}_PORT": str(port) for name, port in self.ports.items()}
        words["SERVICES_IMAGE"] = image("services")
        text = Template((HERE / "here.yaml").read_text("utf-8")).substitute(words)
        self._file.write_text(text, "utf-8")

    def start(self, *services: str) -> None:
        """Start services by the page's command, with images that are there already."""
        [line] = commands(PAGE, "docker compose .* up")
        *words, build = line.split()
        assert build == "--build"
        self._compose(*words, "--detach", "--no-build", *services)

    def stop(self) -> None:
        """End all services by the page's command; nothing of them is left."""
        self._compose(*_end().split(), "--volumes", "--timeout", "1")

    def _compose(self, *words: str) -> None:
        docker, compose, option, file, *rest = words
        assert (docker, compose, option) == ("docker", "compose", "-f")
        program = Path(sys.executable).with_name("podman-compose")
        images = {f"{t.upper()}_IMAGE": image(t) for t in TARGETS}
        ENVIRONMENT.update(images)
        files = ("-f", file, "-f", str(self._file))
        options = ("--in-pod", "false", "-p", PROJECT)
        run(program, *options, *files, *rest, within_s=240)

    def name(self, service: str) -> str:
        """Return the name of a service's container."""
        return f"{PROJECT}_{service}_1"

    def execute(self, service: str, *words: str) -> str:
        """Run a command in a container; it must end well."""
        return podman("exec", self.name(service), *words)

    def pid(self, service: str) -> int:
        """Return the process id of a container, 0 while it does not run."""
        asked = podman("inspect", "--format", "{{.State.Pid}}", self.name(service))
        return int(asked)

    def kill(self, service: str) -> None:
        """SIGKILL all processes of a container; wait until it runs again by itself."""
        before = self.pid(service)
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self.pid(service) not in (0, before), 30)

    def authority(self) -> Path:
        """Return the certificate by which the proxy's own is known."""
        volume = podman(
            "volume", "inspect", "--format", "{{.Mountpoint}}", f"{PROJECT}_caddy"
        )
        file = Path(volume) / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        eventually(file.exists, 30)
        return file

    def logs(self) -> str:
        """Return the end of what each container said."""
        return "\n".join(
            f"== {service}\n{podman('logs', '--tail', '15', self.name(service))}"
            for service in SERVICES
        )


@contextmanager
def running_containers(folder: Path) -> Iterator[Containers]:
    """Run all services until the block ends; nothing of them is left."""
    containers = Containers(folder)
    containers.stop()
    try:
        containers.start(*SERVICES)
        yield containers
    finally:
        containers.stop()


def about(name: str) -> dict[str, object]:
    """Return what podman knows of an image."""
    [known] = json.loads(podman("image", "inspect", image(name)))
    assert isinstance(known, dict)
    return known


def size_of(name: str) -> int:
    """Return how many bytes an image has, by its full name."""
    return int(podman("image", "inspect", "--format", "{{.Size}}", name))
