"""The broker's properties and commands."""

from pathlib import Path

from deploy.kraft import Account, Ports, java_command, java_options, server_properties

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


def test_a_quick_java_takes_its_classes_from_the_archive_if_there_is_one() -> None:
    """A lasting one is set up as Kafka's own script has it, and has no use for it."""
    archive = Path("/classes.jsa")
    shared = "-XX:SharedArchiveFile=/classes.jsa"
    assert shared in java_options(512, True, archive)
    assert "-XX:+UseSerialGC" in java_options(512, True, None)
    assert not any("Shared" in o for o in java_options(512, True, None))
    assert shared not in java_options(512, False, archive)
    assert "-XX:+UseG1GC" in java_options(512, False, archive)
    assert "-Xmx512m" in java_options(512, False, None)


def test_the_jars_are_in_one_order() -> None:
    """An archive of classes fits only the class path that it was made with."""
    jars = [Path("/b.jar"), Path("/a.jar")]
    command = java_command(Path("/java"), ["-x"], jars, Path("/tmp"), "Main", "arg")
    assert command[:2] == ["/java/bin/java", "-x"]
    assert command[-4:] == ["-cp", "/a.jar:/b.jar", "Main", "arg"]
