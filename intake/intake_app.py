"""What the intake answers: trades and statuses, its health, its own description."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import orjson
from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Gauge
from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.admission.addresses import address_of
from gateway.admission.limits import Budgets
from gateway.admission.tokens import TokenGrant, TokenReader, TokenRefused
from gateway.http.parameters import check_parameters
from gateway.http.problems import Problem, handlers
from gateway.http.request_budget import RequestBudget
from gateway.http.security_headers import SecurityHeaders
from gateway.stream.counters import Counters
from ingest.feed.supply import ENTRY_OVERHEAD_BYTES, Ended
from ingest.process.abandoned_handshake import ignore_abandoned_handshakes
from ingest.process.redis_fault import in_words
from ingest.sources.trade_lines import LineReader
from ingest.statuses.status_log import RULES, StatusLog, StatusOutcome, read_reply
from ingest.statuses.trading_status import TradingStatus
from ingest.tradelog.contract import LogUnusable
from intake.bodies import BadBody, ReadBody, read_body
from intake.posted_statuses import read_statuses
from intake.remembered import Clash, KeyedRequest
from intake.room import Full, Reservation, Room
from intake.settings import IntakeSettings
from intake.waiting_requests import Requests
from tickthrottle_client.log_v1 import decode_info, info_key

COME_AGAIN_S = 1
"""When to ask again after 409, 429 and 503."""

AWAY_AFTER_S = 3.0
"""Not ready when a request has waited for the log for so long."""

REQUEST_BYTES = 2_097_152
"""Largest request, head and body; a larger one is refused with 413."""

ANSWER_S = 10.0
"""A request whose trades are not in the log after so many seconds is answered: 503."""

MAX_KEY_CHARS = 200
_EVERYTHING = TokenGrant(may_write=True)


class IntakeMetrics:
    """What the intake counts beside what every feed counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "tickthrottle_intake_requests_total",
            "Requests to append trades, by the status they were answered with.",
            ["status"],
            registry=registry,
        )
        self.requests.labels("200")
        self.waiting = Gauge(
            "tickthrottle_intake_waiting_bytes",
            "Bytes of requests that are read or wait for the log.",
            registry=registry,
            multiprocess_mode="livesum",
        )


@dataclass(slots=True)
class IntakeState:
    """What the routes share."""

    settings: IntakeSettings
    requests: Requests
    reader: LineReader
    tokens: TokenReader | None
    client: Redis
    metrics: IntakeMetrics
    room: Room
    answer_s: float = ANSWER_S
    counters: Counters = field(default_factory=Counters)
    is_open: bool = False
    waiting_since: dict[int, float] = field(default_factory=dict)

    @property
    def waited_s(self) -> float:
        """How long the oldest request has waited for the log."""
        oldest = min(self.waiting_since.values(), default=None)
        return 0.0 if oldest is None else time.monotonic() - oldest


def create_app(state: IntakeState) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        ignore_abandoned_handshakes()
        yield
        await state.client.aclose()

    app = FastAPI(
        title="tickthrottle intake",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        exception_handlers=handlers(),
        dependencies=[Depends(check_parameters)],
        lifespan=lifespan,
    )

    @app.post("/v1/trades")
    async def append_trades(
        request: Request,
        idempotency_key: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Append trades to the trade log; answered once they are in it."""
        return await _counted(state, _append(state, request, idempotency_key))

    @app.post("/v1/statuses")
    async def add_statuses(request: Request) -> Response:
        """Add trading statuses; answered once they are on their way to clients."""
        return await _counted(state, _add_statuses(state, request))

    @app.get("/health/live", include_in_schema=False)
    async def live() -> Response:
        return _json(b'{"status":"live"}')

    @app.get("/health/ready", include_in_schema=False)
    async def ready() -> Response:
        reason = None
        if not state.is_open:
            reason = "starting"
        elif state.waited_s > AWAY_AFTER_S:
            reason = "log_away"
        body = {"status": "ready" if reason is None else "not ready", "reason": reason}
        return _json(orjson.dumps(body), 200 if reason is None else 503)

    settings = state.settings
    app.add_middleware(
        RequestBudget,
        rate_per_s=settings.requests_per_second,
        budgets=Budgets(settings.requests_per_second, settings.request_burst),
        counters=state.counters,
    )
    app.add_middleware(SecurityHeaders)
    return app


async def _counted(state: IntakeState, answering: Awaitable[Response]) -> Response:
    """Return the answer to a request, and count it, whatever becomes of it."""
    status = 500
    try:
        answer = await answering
        status = answer.status_code
        return answer
    except Problem as problem:
        status = problem.status
        raise
    except TokenRefused:
        status = 401
        raise
    finally:
        state.metrics.requests.labels(str(status)).inc()


async def _add_statuses(state: IntakeState, request: Request) -> Response:
    grant = _permit(state, request)
    reservation = _enter(state, request, grant)
    try:
        kind, body = request.headers.get("content-type", ""), await request.body()
        now_us = time.time_ns() // 1_000
        statuses, refused = read_statuses(body, kind, grant, now_us)
        counts, newest = await _add_each(state, statuses, refused, now_us)
    except BadBody as error:
        raise Problem(error.status, "bad_request", str(error)) from None
    except (RedisError, LogUnusable, OSError) as error:
        words = f"{in_words(error)}: ask again, what is added already is not doubled"
        raise _later(503, "unavailable", words) from None
    finally:
        reservation.leave()
    return _json(orjson.dumps(refused.to_answer() | counts | {"number": newest}))


async def _add_each(
    state: IntakeState,
    statuses: Sequence[tuple[int, TradingStatus]],
    refused: ReadBody,
    now_us: int,
) -> tuple[dict[str, int], int | None]:
    """Add statuses; return how many were added and known, and the newest's number."""
    namespace, partitions = state.settings.namespace, 0
    if state.settings.trade_log == "redis":
        info: Any = await state.client.hgetall(info_key(namespace))
        partitions = decode_info(info).partitions if info else 0
    log = StatusLog(state.client, namespace, partitions)
    counts, newest = {"accepted": 0, "repeated": 0}, None
    for index, status in statuses:
        outcome, number = read_reply(await log.add(status, now_us))
        if outcome is StatusOutcome.ADDED:
            counts["accepted"] += 1
            newest = number
        elif outcome is StatusOutcome.REPEATED:
            counts["repeated"] += 1
        else:
            words = f"isin {status.isin}, time {status.time_us}: {RULES[outcome]}"
            refused.refuse(index, outcome.value, words)
    return counts, newest


async def _append(state: IntakeState, request: Request, key: str | None) -> Response:
    grant = _permit(state, request)
    if key is not None:
        _check_key(key)
    reservation = _enter(state, request, grant)
    is_waiting = False
    try:
        body = await request.body()
        keyed = KeyedRequest(
            *(state.client, state.settings.namespace, grant.holder, key, body)
        )
        before = await keyed.begin()
        if before is Clash.PENDING:
            detail = "the request with this key is not answered"
            raise _later(409, "in_progress", detail)
        if before is Clash.OTHER_BODY:
            detail = "Idempotency-Key: there was another body with it"
            raise Problem(422, "key_reused", detail)
        if isinstance(before, bytes):
            return _json(before)
        read, done = await _take_in(state, request, grant, reservation, keyed, body)
        answer = orjson.dumps(read.to_answer())
        if done is None:
            await keyed.keep(answer)
            return _json(answer)
        task = asyncio.create_task(_finish(state, done, reservation, keyed, answer))
        is_waiting = True
    finally:
        if not is_waiting:
            reservation.leave()
    try:
        async with asyncio.timeout(state.answer_s):
            await asyncio.shield(task)
    except TimeoutError:
        again = "with the same Idempotency-Key" if key else "with an Idempotency-Key"
        raise _later(
            503,
            "log_away",
            "the trade log does not answer; the trades wait for it here. Ask again "
            f"{again}: without one they are appended twice",
        ) from None
    except Ended:
        raise _later(503, "stopping", "the intake stops; nobody knows yet") from None
    return _json(answer)


async def _take_in(
    state: IntakeState,
    request: Request,
    grant: TokenGrant,
    reservation: Reservation,
    keyed: KeyedRequest,
    body: bytes,
) -> "tuple[ReadBody, asyncio.Future[None] | None]":
    """Return what a body holds, and the future of its trades if it has any.

    Whatever goes wrong gives the key back: nothing was appended.
    """
    try:
        kind = request.headers.get("content-type", "")
        read = await asyncio.to_thread(read_body, body, kind, state.reader, grant)
        return read, _hand_over(state, reservation, read.entries)
    except BaseException as error:
        await keyed.forget()
        if isinstance(error, BadBody):
            raise Problem(error.status, "bad_request", str(error)) from None
        raise


def _hand_over(
    state: IntakeState, reservation: Reservation, entries: list[tuple[str, bytes]]
) -> "asyncio.Future[None] | None":
    if not entries:
        return None
    try:
        reservation.resize(sum(len(p) + ENTRY_OVERHEAD_BYTES for _, p in entries))
        done = state.requests.put(entries)
    except Full:
        raise _full() from None
    except Ended:
        raise _later(503, "stopping", "the intake stops") from None
    state.metrics.waiting.set(state.room.bytes)
    return done


async def _finish(
    state: IntakeState,
    done: "asyncio.Future[None]",
    reservation: Reservation,
    keyed: KeyedRequest,
    answer: bytes,
) -> None:
    """Wait until the trades are in the log, however long, and keep the answer."""
    number = id(done)
    state.waiting_since[number] = time.monotonic()
    try:
        while not (await asyncio.wait([done], timeout=20))[0]:
            await keyed.extend()
        done.result()
    finally:
        del state.waiting_since[number]
        reservation.leave()
        state.metrics.waiting.set(state.room.bytes)
    await keyed.keep(answer)


def _permit(state: IntakeState, request: Request) -> TokenGrant:
    if state.tokens is None:
        return _EVERYTHING
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise TokenRefused("the request has no header Authorization: Bearer")
    grant = state.tokens.read(token.strip())
    if not grant.may_write:
        raise Problem(403, "not_allowed", "the token has no tick.write")
    return grant


def _check_key(text: str) -> None:
    if not (0 < len(text) <= MAX_KEY_CHARS and text.isascii() and text.isprintable()):
        rule = f"must have 1 to {MAX_KEY_CHARS} printable characters of ASCII"
        raise Problem(400, "bad_request", f"Idempotency-Key: {rule}")


def _enter(state: IntakeState, request: Request, grant: TokenGrant) -> Reservation:
    """Return room for a body as long as it says, or may be. Raises Problem."""
    length = request.headers.get("content-length", "")
    is_short = length.isdecimal() and len(length) < 20
    senders = [f"address {address_of(request.scope)}"]
    if grant.holder:
        senders.append(grant.holder)
    size = min(int(length), REQUEST_BYTES) if is_short else REQUEST_BYTES
    try:
        reservation = state.room.reserve(senders, size)
    except Full:
        raise _full() from None
    state.metrics.waiting.set(state.room.bytes)
    return reservation


def _full() -> Problem:
    detail = "too many trades of yours, or of all, wait for the trade log"
    return _later(429, "full", detail)


def _later(status: int, code: str, detail: str) -> Problem:
    return Problem(status, code, detail, {"Retry-After": str(COME_AGAIN_S)})


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")
