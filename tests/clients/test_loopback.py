"""This machine by its names and numbers."""

from tickthrottle_client.loopback import is_loopback


def test_this_machine_is_known() -> None:
    for host in (
        *("localhost", "LOCALHOST", "localhost.", "board.localhost"),
        *("127.0.0.1", "127.8.9.10", "127.1", "0.0.0.0"),
        *("::1", "[::1]", "::", "::ffff:127.0.0.1"),
    ):
        assert is_loopback(host)


def test_another_one_is_not_taken_for_it() -> None:
    for host in (
        *("", "example.com", "localhost.example.com", "127.example.com"),
        *("10.0.0.1", "128.0.0.1", "::2", "::ffff:10.0.0.1", "127.0.0.x"),
    ):
        assert not is_loopback(host)
