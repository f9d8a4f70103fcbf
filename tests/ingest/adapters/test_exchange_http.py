"""The few requests over HTTP: answers, refusals, nobody there."""

import pytest

from ingest.adapters.adapter import AdapterFault
from ingest.adapters.exchange_http import fetch
from tests.ingest.adapters.exchange import answering
from tests.ports import free_port


def test_an_answer_is_returned_and_fields_are_posted() -> None:
    with answering({"/list": (200, [1, 2])}) as (url, posted):
        assert fetch(f"{url}/list?a=b") == b"[1, 2]"
        assert fetch(f"{url}/list", {"key": "K"}) == b"[1, 2]"
    assert posted == [{"key": "K"}]


def test_a_refusal_says_whether_it_may_pass() -> None:
    for status, can_pass, is_rate_limit in (
        (403, False, False),
        (404, False, False),
        (418, True, True),
        (429, True, True),
        (503, True, False),
    ):
        with (
            answering({"/": (status, "SECRET is\nwrong")}) as (url, _),
            pytest.raises(AdapterFault) as refused,
        ):
            fetch(f"{url}/", {"key": "SECRET"})
        assert refused.value.can_pass is can_pass
        assert refused.value.is_rate_limit is is_rate_limit
        told = str(refused.value)
        assert told.startswith(f"127.0.0.1 refuses with HTTP {status}: ")
        assert "SECRET" not in told
        assert "\n" not in told


def test_an_address_that_cannot_be_had_is_one_sentence() -> None:
    for address, words in (
        (f"http://127.0.0.1:{free_port()}/", "127.0.0.1 cannot be reached: "),
        ("http://no-such-host.invalid/", "no-such-host.invalid cannot be reached: "),
        ("file:///etc/passwd", "must begin with http:// or https://"),
    ):
        with pytest.raises(AdapterFault) as failed:
            fetch(address)
        assert words in str(failed.value)
        assert "\n" not in str(failed.value)


def test_an_answer_that_is_too_large_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ingest.adapters.exchange_http.MAX_ANSWER_BYTES", 10)
    with (
        answering({"/": (200, "x" * 20)}) as (url, _),
        pytest.raises(AdapterFault, match=r"answered with over 10 bytes"),
    ):
        fetch(f"{url}/")
