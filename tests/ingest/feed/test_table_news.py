"""What a feed says of a day gets into the table whenever the table is there."""

from collections.abc import Iterator
from contextlib import closing

import pytest
import redis
from structlog.testing import capture_logs

from ingest.feed.table_news import telling_days
from ingest.instrument_table.day_facts import DayNews
from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.instrument_table.table_loader import read_on, update_table
from ingest.settings import IngestSettings
from tests.conftest import eventually
from tests.ports import free_port

pytestmark = pytest.mark.redis

SAMSUNG, HYNIX, OTHER = "KR7005930003", "KR7000660001", "KR7035720002"


@pytest.fixture
def settings(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> IngestSettings:
    """Of a feed whose table has two instruments, one of them halted; told quickly."""
    monkeypatch.setattr("ingest.feed.table_news.TELL_EVERY_S", 0.05)
    settings = IngestSettings(redis_url=redis_url, namespace="test")
    load(settings, InstrumentEntry(SAMSUNG, name="삼성전자", prev_close="70000"))
    load(settings, InstrumentEntry(HYNIX, status="halted"))
    return settings


def load(settings: IngestSettings, entry: InstrumentEntry) -> None:
    """Have the table say all of an entry, as an operator does."""
    with closing(open_instrument_store(settings)) as store:
        update_table(store, InstrumentList([entry]))


def table(settings: IngestSettings) -> Instruments:
    """Return the table."""
    with closing(open_instrument_store(settings)) as store:
        return read_on(store, Instruments())[0]


def close_of(settings: IngestSettings, isin: str = SAMSUNG) -> str | None:
    """Return the previous close that the table has."""
    entry = table(settings).get(isin)
    return entry.prev_close if entry else None


@pytest.fixture
def news(settings: IngestSettings) -> Iterator[DayNews]:
    """Told while a test runs."""
    news = DayNews()
    with telling_days(settings, news):
        yield news


def test_news_get_into_the_table_while_the_feed_runs(
    settings: IngestSettings, news: DayNews
) -> None:
    """Names stay; a halt that is over ends; what the table has not, it gets not."""
    news.note(SAMSUNG, "71500", is_halted=False)
    news.note(HYNIX, None, is_halted=False)
    news.note(OTHER, "1", is_halted=True)
    eventually(lambda: close_of(settings) == "71500")
    samsung, hynix = table(settings).get(SAMSUNG), table(settings).get(HYNIX)
    assert samsung == InstrumentEntry(SAMSUNG, name="삼성전자", prev_close="71500")
    assert hynix == InstrumentEntry(HYNIX)
    assert table(settings).get(OTHER) is None


def test_what_an_operator_loads_stands_until_the_feed_says_otherwise(
    settings: IngestSettings, news: DayNews
) -> None:
    news.note(SAMSUNG, "71500", is_halted=None)
    eventually(lambda: close_of(settings) == "71500")
    load(settings, InstrumentEntry(SAMSUNG, prev_close="100"))
    news.note(SAMSUNG, "71500", is_halted=True)
    eventually(lambda: table(settings).get(SAMSUNG).status == "halted")  # type: ignore[union-attr]
    assert close_of(settings) == "100"
    news.note(SAMSUNG, "71600", is_halted=True)
    eventually(lambda: close_of(settings) == "71600")


def test_the_table_is_told_once_of_what_does_not_change(
    settings: IngestSettings, client: redis.Redis
) -> None:
    """However many trades say it; and nothing if it says so already."""
    before = client.xlen("test:instruments")
    news = DayNews()
    with telling_days(settings, news):
        for close in ("70000", "71000"):
            for _ in range(1_000):
                news.note(SAMSUNG, close, is_halted=None)
    assert client.xlen("test:instruments") in (before + 1, before + 2)
    assert close_of(settings) == "71000"


def test_what_is_said_at_the_end_is_told_too(settings: IngestSettings) -> None:
    with telling_days(settings, news := DayNews()):
        news.note(SAMSUNG, "71500", is_halted=None)
    assert close_of(settings) == "71500"


def test_nothing_is_told_where_no_instruments_are_listed(
    settings: IngestSettings,
) -> None:
    with telling_days(
        settings.model_copy(update={"list_instruments": False}), DayNews()
    ):
        pass
    silent = settings.model_copy(update={"list_instruments": False})
    with telling_days(silent, news := DayNews()):
        news.note(SAMSUNG, "71500", is_halted=None)
    assert close_of(settings) == "70000"


def test_a_table_that_is_away_is_told_later(
    settings: IngestSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warning; the news are the newest by then."""
    away = settings.model_copy(
        update={"redis_url": f"redis://127.0.0.1:{free_port()}/0"}
    )
    address = [away]
    monkeypatch.setattr(
        "ingest.feed.table_news.open_instrument_store",
        lambda _: open_instrument_store(address[0]),
    )
    news = DayNews()
    with capture_logs() as logs, telling_days(settings, news):
        news.note(SAMSUNG, "71500", is_halted=None)
        eventually(lambda: [e for e in logs if "not told of the day" in e["event"]])
        news.note(SAMSUNG, "71600", is_halted=None)
        address[0] = settings
        eventually(lambda: close_of(settings) == "71600")
    assert len([e for e in logs if e["log_level"] == "warning"]) == 1
