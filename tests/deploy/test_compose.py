"""The file for those who have containers: the same versions, nothing open to others."""

from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.kafka_broker.kraft import CLUSTER_ID
from tests.paths import ROOT

DEPLOY = ROOT / "deploy"
SERVICES: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))[
    "services"
]
POM = ElementTree.parse(ROOT / "tests" / "kafka_broker" / "pom.xml")
IN_POM = "{http://maven.apache.org/POM/4.0.0}"


def test_the_image_is_the_kafka_that_make_kafka_runs() -> None:
    """One version is tested, whichever way it is started."""
    version = POM.findtext(f".//{IN_POM}kafka.version")
    assert version is not None
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version}"


def test_that_kafka_is_above_its_known_holes() -> None:
    """Entries could end up in another topic before 4.0.2 and 4.1.2."""
    version = POM.findtext(f".//{IN_POM}kafka.version") or ""
    assert tuple(int(n) for n in version.split(".")) >= (4, 1, 2)


def test_every_version_in_the_pom_is_one_version() -> None:
    """No range: the same jars today and tomorrow."""
    versions = [e.text or "" for e in POM.iter() if e.tag.endswith("version")]
    assert len(versions) >= 5
    assert not any(set(version) & set("[(,") for version in versions)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_listens_on_loopback_keeps_its_data_and_says_that_it_is_up(
    name: str,
) -> None:
    """Nothing is open to others, nothing is lost by a restart."""
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["volumes"]
    assert service["healthcheck"]["test"]


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
