"""What of others' text is written to a terminal."""

from tickthrottle_client.harmless_text import harmless


def test_nothing_acts_on_a_terminal_and_what_is_read_stays() -> None:
    """Escapes, eight-bit controls, ends of lines and marks of direction are shown."""
    assert harmless("삼성전자 ₩ 72,000") == "삼성전자 ₩ 72,000"
    assert harmless("\x1b[2J\x9b2J\n\u202e") == r"\x1b[2J\x9b2J\n\u202e"
    assert harmless(b"\xff\x1b") == r"\xff\x1b"
