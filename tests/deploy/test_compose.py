"""The file for those who have containers: same versions, little open, few rights."""

import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import redis
import yaml

from cli.local.valkey import valkey_command
from tests.conftest import eventually
from tests.kafka_broker.kraft import CLUSTER_ID
from tests.paths import ROOT
from tests.ports import free_port
from tests.redis_users import documented

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES, VOLUMES = COMPOSE["services"], COMPOSE["volumes"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
POM = ElementTree.parse(ROOT / "tests" / "kafka_broker" / "pom.xml")
IN_POM = "{http://maven.apache.org/POM/4.0.0}"


def test_the_image_is_the_kafka_that_make_kafka_runs() -> None:
    """One version is tested, whichever way it is started."""
    version = POM.findtext(f".//{IN_POM}kafka.version")
    assert version is not None
    assert (
        SERVICES["kafka"]["image"]
        == f"${{KAFKA_IMAGE:-docker.io/apache/kafka:{version}}}"
    )
    # Entries could end up in another topic before 4.0.2 and 4.1.2.
    assert tuple(int(n) for n in version.split(".")) >= (4, 1, 2)


def test_every_version_in_the_pom_is_one_version() -> None:
    """No range: the same jars today and tomorrow."""
    versions = [e.text or "" for e in POM.iter() if e.tag.endswith("version")]
    assert len(versions) >= 5
    assert not any(set(version) & set("[(,") for version in versions)


def test_only_the_proxy_is_open_to_others() -> None:
    """What else has a port has it on loopback."""
    for name, service in SERVICES.items():
        ports = service.get("ports", [])
        if name == "proxy":
            assert ports == ["80:80", "443:443"]
        else:
            assert all(port.startswith("127.0.0.1:") for port in ports), name


KEEPERS = (
    *("valkey", "kafka", "prometheus", "grafana", "proxy"),
    *("archive", "analytics"),
)


def test_what_keeps_data_keeps_it_in_a_volume() -> None:
    """Nothing is lost with a container."""
    for name in KEEPERS:
        sources = {volume.partition(":")[0] for volume in SERVICES[name]["volumes"]}
        assert sources & VOLUMES.keys(), name


def test_a_container_of_ours_may_do_little() -> None:
    """It can write nowhere but in /tmp, and gets no right beyond its user's."""
    for name in OURS:
        service = SERVICES[name]
        assert service["read_only"], name
        assert service["tmpfs"] == ["/tmp"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["build"]["target"] in service["image"], name


def test_every_service_that_stays_says_how_it_is_or_is_started_again() -> None:
    """A container that dies does not stay away."""
    for name, service in SERVICES.items():
        if name not in ("kafka", "secrets"):
            assert service["restart"] == "unless-stopped", name
    for name in ("valkey", "kafka", *OURS):
        assert name == "secrets" or SERVICES[name]["healthcheck"]["test"]


USER_OF = {
    **dict.fromkeys(("throttle-1", "throttle-2"), "tt-job"),
    **dict.fromkeys(("gateway-1", "gateway-2"), "tt-gateway"),
    **{"archive": "tt-archive", "analytics": "tt-analytics", "feed": "tt-exchange"},
}
FOLDER = "/run/redis"


def test_each_service_has_the_password_of_one_user() -> None:
    """Its own, in a volume that no other kind of service has."""
    made = dict(volume.split(":")[:2] for volume in SERVICES["secrets"]["volumes"])
    for name, service in SERVICES.items():
        mounted = dict(volume.split(":", 1) for volume in service.get("volumes", ()))
        passwords = {v: at for v, at in mounted.items() if v.startswith("redis")}
        if name == "valkey":
            assert passwords == {"redis": f"{FOLDER}:ro"}
            assert made["redis"] == f"{FOLDER}/all"
        elif name in USER_OF:
            assert service["environment"]["REDIS_URL"] == f"file://{FOLDER}/url"
            [volume] = passwords
            assert passwords[volume] == f"{FOLDER}:ro"
            assert made[volume] == f"{FOLDER}/{USER_OF[name]}"
        else:
            assert name == "secrets" or not passwords


def test_valkey_is_reached_by_those_who_have_a_password_for_it() -> None:
    """The proxy, Prometheus and Grafana are in networks in which it is not."""
    assert SERVICES["valkey"]["networks"] == ["pipeline"]
    assert SERVICES["secrets"]["network_mode"] == "none"
    near = {name for name, s in SERVICES.items() if "pipeline" in s.get("networks", ())}
    assert near == {"valkey", "kafka", *USER_OF}
    for name, service in SERVICES.items():
        assert name == "secrets" or COMPOSE["networks"].keys() >= {*service["networks"]}


def test_its_users_are_those_of_the_document() -> None:
    """And one that may do everything, for whoever runs it."""
    text = (DEPLOY / "redis" / "users.acl").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if line.startswith("user ")]
    users = {name: rules for _, name, *rules in lines}
    assert users.pop("default") == ["on", ">password", "~*", "&*", "+@all"]
    assert users == documented()


def make_secrets(folder: Path) -> None:
    """Run what makes the secrets, on folders in place of volumes."""
    script = (DEPLOY / "redis" / "make-secrets").read_text("utf-8")
    file = folder / "make-secrets"
    file.write_text(script.replace("/run/", f"{folder}/"), "utf-8")
    (folder / "users.acl").write_bytes((DEPLOY / "redis" / "users.acl").read_bytes())
    subprocess.run(["sh", file], check=True, timeout=60)


@pytest.mark.redis
def test_passwords_are_made_once_and_are_the_servers(tmp_path: Path) -> None:
    """Each user gets in with the address that was made for it, and nobody without."""
    users = {*USER_OF.values()}
    for name in ("all", *users):
        (tmp_path / "redis" / name).mkdir(parents=True)
    (tmp_path / "tickthrottle").mkdir()
    make_secrets(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    make_secrets(tmp_path)
    assert {path: path.read_bytes() for path in files} == before
    assert len(before[tmp_path / "tickthrottle" / "operators-token"]) > 32
    assert len({*before.values()}) == len(before)
    port = free_port()
    acl = str(tmp_path / "redis" / "all" / "users.acl")
    command = [*valkey_command(port, tmp_path), "--aclfile", acl]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            url = f"redis://127.0.0.1:{port}"
            eventually(lambda: "authenticated" in refusal(url))
            for name in users:
                made = (tmp_path / "redis" / name / "url").read_text().strip()
                address = made.replace("valkey:6379", f"127.0.0.1:{port}")
                assert refusal(address) == ""
                with (
                    redis.Redis.from_url(address) as client,
                    pytest.raises(redis.exceptions.NoPermissionError),
                ):
                    client.flushall()
        finally:
            server.terminate()


def refusal(url: str) -> str:
    """Return why a server does not answer a user, empty if it does."""
    with redis.Redis.from_url(url) as client:
        try:
            client.ping()
        except redis.exceptions.AuthenticationError as error:
            return str(error)
        except redis.exceptions.ConnectionError:
            return ""
    return ""


def test_prometheus_looks_at_the_services_that_there_are() -> None:
    """By their names, at the ports they have."""
    text = (DEPLOY / "prometheus" / "containers.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["scrape_configs"]
    targets = [t for job in jobs for t in job["static_configs"][0]["targets"]]
    for target in targets:
        name, _, port = target.partition(":")
        settings = SERVICES[name]["environment"]
        metrics = settings.get("TICKTHROTTLE_METRICS_PORT")
        # The operators' port is the one after the public one.
        assert port == (metrics or str(int(settings["TICKTHROTTLE_PORT"]) + 1))
    assert len(targets) == 7


def test_the_brokers_settings_fit_together() -> None:
    """Every listener has a protocol and an address for those it is for."""
    settings = SERVICES["kafka"]["environment"]
    listeners = {
        name.split("://")[0] for name in settings["KAFKA_LISTENERS"].split(",")
    }
    pairs = settings["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    assert {pair.split(":")[0] for pair in pairs} == listeners
    advertised = settings["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert {address.split("://")[0] for address in advertised} == (
        listeners - {settings["KAFKA_CONTROLLER_LISTENER_NAMES"]}
    )
    assert settings["KAFKA_INTER_BROKER_LISTENER_NAME"] in listeners
    assert settings["CLUSTER_ID"] == CLUSTER_ID
    assert settings["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
