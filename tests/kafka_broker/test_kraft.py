"""The broker's properties and commands."""

from pathlib import Path

from tests.kafka_broker.kraft import (
    Account,
    Ports,
    java_command,
    java_options,
    server_properties,
)

PORTS = Ports(plain=1, sasl=2, controller=3)


def properties() -> dict[str, str]:
    """Return a configuration as a client of the file would read it."""
    text = server_properties(PORTS, Account("kim", "secret"), Path("/data"))
    return dict(line.split("=", 1) for line in text.splitlines())


def test_it_listens_on_loopback_only() -> None:
    """A broker to test with is nobody else's business."""
    for name in ("listeners", "advertised.listeners"):
        for listener in properties()[name].split(","):
            assert "://127.0.0.1:" in listener
    assert properties()["controller.quorum.voters"] == "1@127.0.0.1:3"


def test_only_the_second_listener_asks_for_the_password() -> None:
    """Tests without credentials need none."""
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    assert 'user_kim="secret";' in properties()[name]
    assert (
        "PLAINTEXT://127.0.0.1:1,SASL_PLAINTEXT://127.0.0.1:2"
        in (properties()["advertised.listeners"])
    )


def test_every_copy_is_the_only_one() -> None:
    """One node cannot keep three copies."""
    for name, value in properties().items():
        if name.endswith(("replication.factor", "min.isr")):
            assert value == "1", name


def test_a_quick_java_starts_sooner_and_a_lasting_one_runs_faster() -> None:
    """The lasting one is set up as Kafka's own script has it."""
    assert "-XX:+UseSerialGC" in java_options(512, is_quick=True)
    assert "-XX:+UseG1GC" in java_options(512, is_quick=False)
    assert "-Xmx512m" in java_options(512, is_quick=False)


def test_the_jars_are_in_one_order() -> None:
    """The same command every time, whatever order the folder has."""
    jars = [Path("/b.jar"), Path("/a.jar")]
    command = java_command(Path("/java"), ["-x"], jars, Path("/tmp"), "Main", "arg")
    assert command[:2] == ["/java/bin/java", "-x"]
    assert command[-4:] == ["-cp", "/a.jar:/b.jar", "Main", "arg"]
