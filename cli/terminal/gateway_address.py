"""Which gateway a command asks, and the asking."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

import typer

from cli.local.pipelines import NotOne, Pipeline, running_pipelines
from cli.local.settings import StateSettings
from ingest.process.direct_http import open_direct, open_url

PAGE = "http://127.0.0.1:8000/"
OPERATORS = "http://127.0.0.1:8001/"
"""Where a gateway answers unless its settings say otherwise."""

ANSWER_WITHIN_S = 10.0
MOST_ANSWER_BYTES = 64 * 2**20

TokenFile = Annotated[
    Path | None,
    typer.Option(help="File with the token that the gateway asks for, if it does."),
]


class NoAnswer(RuntimeError):
    """The gateway cannot be asked, or does not answer; says why."""


def page_of(url: str | None) -> str:
    """Return the address of a gateway's page: as given, or of what runs here.

    Raises NotOne where several pipelines run, and ValueError for what is no address.
    """
    return _address(url, lambda pipeline: pipeline.page, PAGE)


def operators_of(url: str | None) -> str:
    """Return the address of a gateway's operators' port, in the same way."""
    return _address(url, lambda pipeline: pipeline.operators, OPERATORS)


def _address(
    url: str | None, address_of: Callable[[Pipeline], str], default: str
) -> str:
    if url is not None:
        return _checked(url)
    running = running_pipelines(StateSettings().state_dir)
    addresses = [address for p in running if (address := address_of(p))]
    if len(addresses) > 1:
        ways = " or ".join(f"--url {address}" for address in addresses)
        raise NotOne(f"{len(addresses)} pipelines run here, choose one: {ways}")
    return addresses[0] if addresses else default


def stream_of(page: str) -> str:
    """Return the address of the stream of a page's gateway."""
    parts = urlsplit(page)
    scheme = "wss" if parts.scheme == "https" else "ws"
    return urlunsplit((scheme, parts.netloc, parts.path + "v1/stream", "", ""))


def read_token(path: Path | None) -> str | None:
    """Return the token that a file holds. Raises NoAnswer if it cannot be read."""
    if path is None:
        return None
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NoAnswer(f"token_file {path}: {error}") from None


def ask(
    address: str, token: str | None = None, *, of_operators: bool = False
) -> tuple[bytes, Any]:
    """Return the JSON that a gateway answers, as it comes and read.

    What has a decimal point is read as text: no digit is lost. Operators' ports are
    asked through no proxy. Raises NoAnswer.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(address, headers=headers)
    opened = open_direct if of_operators else open_url
    try:
        with opened(request, ANSWER_WITHIN_S) as answer:
            body = answer.read(MOST_ANSWER_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise NoAnswer(f"{address} answers {error.code}: {_detail(error)}") from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise NoAnswer(f"no gateway answers at {address}: {reason}") from None
    try:
        if len(body) <= MOST_ANSWER_BYTES:
            return body, json.loads(body, parse_float=str)
    except ValueError:
        pass
    raise NoAnswer(f"{address} answers, but no gateway does there")


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(65_536))["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)


def _checked(url: str) -> str:
    if "@" in url:
        raise ValueError("url: takes no user and no password; see --token-file")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"url {url!r}: must be like http://127.0.0.1:8000/")
    path = parts.path if parts.path.endswith("/") else parts.path + "/"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
