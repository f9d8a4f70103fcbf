"""``POST /v1/statuses``: what is taken in, refused, repeated, across kills."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis

from gateway.admission.tokens import EVERYTHING
from ingest.redis_keys import StatusKeys
from ingest.statuses.status_entry import decode_added
from intake.bodies import BadBody
from intake.posted_statuses import MOST_STATUSES, read_statuses
from tests.conftest import eventually
from tests.gateway.issuer import SECRET, make_token
from tests.intake.test_intake_server import Answer, Intake, intake, make_fields

ISIN, OTHER = "KR7005930003", "KR7000660001"
TIME_US = 1_773_964_803_811_204
KEYS = StatusKeys("test")
JSON = {"content_type": "application/json"}


def make_status(number: int = 0, **changed: Any) -> dict[str, Any]:
    """Return the fields of a halt; a greater number is a later one."""
    return {"isin": ISIN, "status": "halted", "time": TIME_US + number, **changed}


def post(intake: Intake, statuses: Any, **headers: str) -> Answer:
    """Add statuses."""
    body = statuses if isinstance(statuses, bytes) else orjson.dumps(statuses)
    return intake.ask("POST", "/v1/statuses", body, **{**JSON, **headers})


def numbered(client: redis.Redis) -> list[tuple[int, int]]:
    """Return the numbers and times of all that were added."""
    entries: Any = client.xrange(KEYS.stream)
    read = [decode_added(f, int(i.partition(b"-")[0])) for i, f in entries]
    return [(entry.number, entry.status.time_us) for entry in read]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"[]", "application/json", 400),
        (b"{", "application/json", 400),
        (b'{"trades":[]}', "application/json", 400),
        (b"[1" + b",1" * MOST_STATUSES + b"]", "application/json", 413),
        (b"x", "text/plain", 415),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    body: bytes, kind: str, status: int
) -> None:
    with pytest.raises(BadBody) as refused:
        read_statuses(body, kind, EVERYTHING, TIME_US)
    assert refused.value.status == status
    assert "status" in str(refused.value) or status in (400, 415)


def test_one_that_breaks_a_rule_is_refused_alone() -> None:
    lines = b'{"isin":"KR7005930003","status":"halted","time":%d}\n5\n{\n' % TIME_US
    statuses, refused = read_statuses(lines, "application/jsonl", EVERYTHING, TIME_US)
    assert [index for index, _ in statuses] == [0]
    assert refused.reasons == {"not_object": 1, "not_json": 1}


@pytest.fixture
def plain(tmp_path: Path, redis_url: str) -> Iterator[Intake]:
    """An intake that asks for no token."""
    with intake(tmp_path, redis_url) as found:
        yield found


@pytest.mark.redis
@pytest.mark.timeout(120)
def test_what_is_accepted_has_a_number_and_the_trade_before_it(
    plain: Intake, client: redis.Redis
) -> None:
    assert plain.post([make_fields(1)]).status == 200
    answer = post(plain, [make_status(), make_status(1, status="x"), make_status(2)])
    assert answer.status == 200
    told = {name: answer.body[name] for name in ("accepted", "refused", "repeated")}
    assert told == {"accepted": 2, "refused": 1, "repeated": 0}
    assert answer.body["number"] == 2
    assert answer.body["refusals"][0]["index"] == 1
    assert "must be one of" in answer.body["refusals"][0]["message"]
    again = post(plain, {"statuses": [make_status(), make_status(3)]})
    assert (again.body["accepted"], again.body["repeated"]) == (1, 1)
    oldest: Any = client.xrange(KEYS.stream, count=1)
    assert b'"price":"1.50"' in oldest[0][1][b"last"]
    assert [number for number, _ in numbered(client)] == [1, 2, 3]


@pytest.mark.redis
@pytest.mark.timeout(120)
def test_a_token_needs_the_right_and_the_instrument(
    tmp_path: Path, redis_url: str
) -> None:
    key = tmp_path / "key.txt"
    key.write_text(SECRET)
    with intake(tmp_path, redis_url, token_key_file=str(key)) as guarded:
        assert post(guarded, [make_status()]).status == 401
        reader = f"Bearer {make_token(tick={})}"
        assert post(guarded, [make_status()], authorization=reader).status == 403
        writer = f"Bearer {make_token(tick={'write': True, 'keys': [ISIN]})}"
        statuses = [make_status(), make_status(isin=OTHER)]
        told = post(guarded, statuses, authorization=writer)
    assert (told.body["accepted"], told.body["reasons"]) == (1, {"not_allowed": 1})


@pytest.mark.redis
@pytest.mark.timeout(240)
def test_none_is_lost_or_doubled_however_often_the_intake_is_killed(
    tmp_path: Path, redis_url: str, client: redis.Redis
) -> None:
    """Who has no answer sends again all that may be missing, in its order."""
    answered = 0

    def send(running: Intake) -> None:
        nonlocal answered
        with suppress(OSError, HTTPException):
            while answered < 300:
                # What had no answer is sent again.
                assert post(running, [make_status(answered)]).status == 200
                answered += 1

    for _ in range(3):
        begun = len(numbered(client))
        with intake(tmp_path, redis_url) as found:
            sender = threading.Thread(target=send, args=(found,))
            sender.start()
            eventually(lambda at=begun: len(numbered(client)) > at + 20)
            found.process.kill()
            sender.join(60)
    with intake(tmp_path, redis_url) as found:
        send(found)
    assert numbered(client) == [(n + 1, TIME_US + n) for n in range(300)]
