"""Whom a proxy of the environment is asked for, and whom not."""

import ast
import urllib.error
import urllib.request

import pytest

from ingest.process.direct_http import open_direct, open_url
from tests.dead_proxy import DEAD_PROXY
from tests.ingest.adapters.exchange import answering
from tests.package_graph import name_of, sources, tree_of
from tests.paths import ROOT


@pytest.fixture(autouse=True)
def _dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in DEAD_PROXY.items():
        monkeypatch.setenv(name, value)


def test_this_machine_is_asked_without_a_proxy() -> None:
    """By its number and by its name."""
    with answering({"/": (200, "here")}) as (url, _):
        for address in (url, url.replace("127.0.0.1", "localhost")):
            with open_url(urllib.request.Request(f"{address}/"), 5) as answer:
                assert answer.read() == b'"here"'


def test_elsewhere_the_environment_says_which_proxy() -> None:
    """It is asked, and is not there."""
    with pytest.raises(urllib.error.URLError, match="refused"):
        open_url(urllib.request.Request("http://192.0.2.1/"), 5)


def test_what_is_asked_directly_is_looked_for_itself() -> None:
    """Wherever it is: an unknown name is not a proxy's answer."""
    with pytest.raises(urllib.error.URLError, match=r"(?i)name|resol"):
        open_direct("http://no-such-host.invalid/", 5)


def test_nothing_else_opens_an_address() -> None:
    """Another opener would ask a proxy for this machine."""
    clients = [*sources(), *sources("clients/python"), ROOT / "bench" / "pictures.py"]
    for path in clients:
        names = {
            node.attr
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Attribute)
        }
        if name_of(path) != "ingest/process/direct_http.py":
            assert not names & {"urlopen", "build_opener"}, path
