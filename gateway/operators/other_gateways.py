"""Asks the other gateways for their clients, when an operator wants to see them.

A gateway writes nothing to Redis, so it cannot tell the others what it knows: whoever
looks at one has it ask the others, as one operator more.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from pydantic import TypeAdapter, ValidationError

from gateway.health.client_states import State
from gateway.health.shared_answer import SharedAnswer
from gateway.operators.operators_schemas import ClientsAnswer, OtherGatewayAnswer
from gateway.upstream.asked_in_thread import AskedInThread

ANSWER_S = 1.0
"""A gateway that has not answered in this time is told of as one that has not."""

MOST_BYTES = 65_536
"""Longest answer of a gateway that is read."""

MOST_CLIENTS = 20
"""Most clients of a gateway that are shown."""

_LATE = f"it has not answered within {ANSWER_S:g} s"

_ANSWER = TypeAdapter(ClientsAnswer)


@dataclass(frozen=True, slots=True)
class _Reply:
    body: bytes = b""
    problem: str | None = None


class OtherGateways:
    """Shows the clients of the gateways at ``addresses``, each ``http://host:port``.

    ``token`` is shown to all of them. What was asked is half a second old at most, and
    whoever asks meanwhile gets the same: so each is asked once at a time.
    """

    def __init__(self, addresses: Collection[str], token: str | None) -> None:
        self._others = [_Other(address, token) for address in sorted(addresses)]
        self._shared: dict[State | None, SharedAnswer[list[OtherGatewayAnswer]]] = {}

    async def ask(self, only: State | None) -> list[OtherGatewayAnswer]:
        """Return what each says of its clients, ``only`` of a state.

        It takes little more than ``ANSWER_S`` at most.
        """
        shared = self._shared.get(only)
        if shared is None:
            shared = self._shared[only] = SharedAnswer(partial(self._ask_all, only))
        return await shared.get()

    async def _ask_all(self, only: State | None) -> list[OtherGatewayAnswer]:
        return await asyncio.gather(*(other.ask(only) for other in self._others))


class _Other:
    """One gateway, asked in threads: a client of HTTP that waits for itself alone."""

    def __init__(self, address: str, token: str | None) -> None:
        self._url = urlsplit(address)
        self._token = token
        self._asked: dict[State | None, AskedInThread[_Reply]] = {}

    async def ask(self, only: State | None) -> OtherGatewayAnswer:
        """Return what it says, or why it says nothing."""
        asked = self._asked.setdefault(only, AskedInThread(self._url.netloc))
        path = f"/v1/clients?limit={MOST_CLIENTS}"
        path += "" if only is None else f"&state={only}"
        try:
            reply = await asked.ask(
                partial(_fetch, self._url, path, self._token), ANSWER_S
            )
        except TimeoutError:
            return self._unknown(_LATE)
        if reply.problem is not None:
            return self._unknown(reply.problem)
        try:
            clients = _ANSWER.validate_json(reply.body)
        except ValidationError:
            return self._unknown("its answer is not that of a gateway")
        rows = clients.data[:MOST_CLIENTS]
        return OtherGatewayAnswer(
            self._url.netloc, None, clients.count, clients.states, rows
        )

    def _unknown(self, problem: str) -> OtherGatewayAnswer:
        return OtherGatewayAnswer(self._url.netloc, problem, None, {}, [])


def _fetch(url: SplitResult, path: str, token: str | None) -> _Reply:
    """Ask for a path, through no proxy, and follow no other address."""
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=ANSWER_S)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES + 1)
    except TimeoutError:
        return _Reply(problem=_LATE)
    except (OSError, HTTPException, ValueError) as error:
        # A ValueError is a name that no server can have.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return _Reply(problem=f"no connection: {reason}")
    finally:
        connection.close()
    if answer.status == 401:
        return _Reply(problem="it does not accept the operators' token of this gateway")
    if answer.status != 200:
        return _Reply(problem=f"it has answered {answer.status}")
    if len(body) > MOST_BYTES:
        return _Reply(problem=f"its answer has more than {MOST_BYTES:,} bytes")
    return _Reply(body)
