"""Which web pages may open a stream."""

from gateway.admission.origins import is_allowed, refusal

HOST = "prices.example:8000"
LISTED = frozenset({"https://shop.example"})


def test_a_page_is_let_in_from_here_or_from_the_list() -> None:
    """Programs that are no browser name no origin and are let in too."""
    cases: list[tuple[str | None, bool]] = [
        (None, True),
        ("http://prices.example:8000", True),
        ("https://prices.example:8000", True),
        ("https://shop.example", True),
        ("http://shop.example", False),
        ("https://shop.example:444", False),
        ("https://shop.example.evil", False),
        ("http://prices.example", False),
        ("http://evil/prices.example:8000", False),
        ("http://evil@prices.example:8000", False),
        ("null", False),
        ("", False),
        ("http://[", False),
        ("http://[::1", False),
        ("http://\u2100", False),
    ]
    for origin, expected in cases:
        assert is_allowed(origin, HOST, LISTED) is expected


def test_a_star_lets_every_page_in() -> None:
    """Even one that has no origin of its own."""
    assert is_allowed("null", HOST, {"*"})


def test_a_page_opened_as_a_file_is_told_what_helps() -> None:
    """Listing its origin does not: it has none."""
    assert "serve it" in refusal("null")
    assert "serve it" not in refusal("http://evil")


def test_without_a_host_nothing_is_from_here() -> None:
    """An empty origin is not the origin of a missing host."""
    assert not is_allowed("http://a", None, frozenset())
