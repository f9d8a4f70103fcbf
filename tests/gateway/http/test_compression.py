"""Answers as gzip, for clients that take it."""

import asyncio
import gzip

import pytest

from gateway.app import STATIC
from gateway.http.compression import KEPT_BYTES, KeptBodies, takes_gzip
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row
from tests.gateway.servers import Gateway


def test_who_takes_gzip() -> None:
    """As RFC 9110 says."""
    for header, takes in [
        ("", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("deflate, *", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("identity", False),
    ]:
        assert takes_gzip(header) is takes


async def test_bodies_are_kept_within_a_bound() -> None:
    """Whatever nobody has asked for the longest makes room."""
    kept = KeptBodies(10)
    tasks = [asyncio.create_task(asyncio.sleep(0, b"")) for _ in range(4)]
    for number, size in enumerate((4, 4)):
        kept.put(number, tasks[number], size)
    assert kept.get(0) is tasks[0]
    kept.put(2, tasks[2], 4)
    assert [kept.get(number) for number in range(3)] == [tasks[0], None, tasks[2]]
    kept.put(3, tasks[3], 10)
    assert (len(kept), kept.get(3)) == (1, tasks[3])


def test_the_files_of_all_pages_are_compressed_once() -> None:
    """A page asks for eighty of them each time it is opened."""
    files = sum(path.stat().st_size for path in STATIC.rglob("*") if path.is_file())
    assert files < KEPT_BYTES / 8


@pytest.mark.redis
@pytest.mark.parametrize("path", ["/v1/quotes", "/v1/windows", "/static/board.js"])
def test_a_compressed_answer_is_the_same_and_may_be_had_already(
    publisher: Publisher, gateway: Gateway, path: str
) -> None:
    """Its tag is weak, and as good as the plain one's."""
    publisher.publish(*[make_row(isin) for isin in make_isins(200)])
    gateway.wait_until(2)
    plain, tag = gateway.fetch(path)[1:]
    body, headers = gateway.fetch(path, accept_encoding="gzip")[1:]
    assert (gzip.decompress(body), headers["content-encoding"]) == (plain, "gzip")
    assert len(body) < len(plain) / 2
    assert headers["vary"] == tag["vary"]
    assert headers["vary"].endswith("Accept-Encoding")
    weak = headers["etag"]
    assert weak == f"W/{tag['etag']}"
    known = {"accept_encoding": "gzip", "if_none_match": weak}
    status, body, headers = gateway.fetch(path, **known)
    assert (status, body, headers["etag"]) == (304, b"", weak)
    known["if_none_match"] = tag["etag"]
    status, _, headers = gateway.fetch(path, **known)
    assert (status, headers["etag"]) == (304, tag["etag"])
    assert gateway.fetch(path, if_none_match=weak)[0] == 304


@pytest.mark.redis
def test_what_is_short_leaves_as_it_is(gateway: Gateway) -> None:
    """Nothing is won with it."""
    headers = gateway.fetch("/v1/version", accept_encoding="gzip")[2]
    assert "content-encoding" not in headers
