"""Asks the other gateways for their clients, when an operator wants to see them.

A gateway writes nothing to Redis, so it cannot tell the others what it knows: whoever
looks at one has it ask the others, as one operator more.
"""

import asyncio
from collections.abc import Collection
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from pydantic import TypeAdapter, ValidationError

from gateway.health.client_states import State
from gateway.operators.operators_schemas import ClientsAnswer, OtherGatewayAnswer
from gateway.upstream.shared_answer import AskedInThread, SharedAnswer

ANSWER_S = 1.0
"""A gateway that has not answered in this time is told of as one that has not."""

MOST_BYTES = 65_536
"""Longest answer of a gateway that is read."""

MOST_CLIENTS = 20
"""Most clients of a gateway that are shown."""

_LATE = f"it has not answered within {ANSWER_S:g} s"

_ANSWER = TypeAdapter(ClientsAnswer)


class OtherGateways:
    """Shows the clients of the gateways at ``addresses``, each ``http://host:port``.

    ``token`` is shown to all of them. What was asked is half a second old at most, and
    whoever asks meanwhile gets the same: so each is asked once at a time.
    """

    def __init__(self, addresses: Collection[str], token: str | None) -> None:
        self._urls = [urlsplit(address) for address in sorted(addresses)]
        self._token = token
        self._shared: dict[State | None, SharedAnswer[list[OtherGatewayAnswer]]] = {}
        self._threads: dict[tuple[str, State | None], AskedInThread[bytes | str]] = {}

    async def ask(self, only: State | None) -> list[OtherGatewayAnswer]:
        """Return what each says of its clients, ``only`` of a state.

        It takes little more than ``ANSWER_S`` at most.
        """
        shared = self._shared.get(only)
        if shared is None:
            shared = self._shared[only] = SharedAnswer(partial(self._ask_all, only))
        return await shared.get()

    async def _ask_all(self, only: State | None) -> list[OtherGatewayAnswer]:
        return await asyncio.gather(*(self._ask(url, only) for url in self._urls))

    async def _ask(self, url: SplitResult, only: State | None) -> OtherGatewayAnswer:
        # A client of HTTP that waits, in a thread: for itself alone.
        name = url.netloc
        thread = self._threads.setdefault((name, only), AskedInThread(name))
        path = f"/v1/clients?limit={MOST_CLIENTS}"
        path += "" if only is None else f"&state={only}"
        try:
            reply = await thread.ask(partial(_fetch, url, path, self._token), ANSWER_S)
            if isinstance(reply, bytes):
                clients = _ANSWER.validate_json(reply)
                rows = clients.data[:MOST_CLIENTS]
                return OtherGatewayAnswer(
                    name, None, clients.count, clients.states, rows
                )
        except TimeoutError:
            reply = _LATE
        except ValidationError:
            reply = "its answer is not that of a gateway"
        return OtherGatewayAnswer(name, reply, None, {}, [])


def _fetch(url: SplitResult, path: str, token: str | None) -> bytes | str:
    """Return what is at a path, or why not; through no proxy, to no other address."""
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=ANSWER_S)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES + 1)
    except TimeoutError:
        return _LATE
    except (OSError, HTTPException, ValueError) as error:
        # A ValueError is a name that no server can have.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return f"no connection: {reason}"
    finally:
        connection.close()
    if answer.status == 401:
        return "it does not accept the operators' token of this gateway"
    if answer.status != 200:
        return f"it has answered {answer.status}"
    if len(body) > MOST_BYTES:
        return f"its answer has more than {MOST_BYTES:,} bytes"
    return body
