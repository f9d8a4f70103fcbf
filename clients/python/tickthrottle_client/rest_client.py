"""What a gateway tells of the past, over REST, with every digit::

    past = RestClient("http://127.0.0.1:8000")
    past.history("KR7005930003").to_pandas()
    past.bars("KR7005930003", "5m").to_arrow()

It needs the standard library alone; data frames need theirs.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

from tickthrottle_client.bar_book import DECIMALS
from tickthrottle_client.harmless_text import harmless
from tickthrottle_client.loopback import is_loopback
from tickthrottle_client.tick_v1 import read_decimal

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl  # type: ignore[import-not-found, unused-ignore]
    import pyarrow as pa

Moment = int | datetime
"""Milliseconds since 1970 UTC, or a time with its zone."""

PAGE = 20_000
"""Most windows that a gateway answers at once."""

MOST_BYTES = 256 * 2**20
"""A longer answer is not read."""

_NO_ANSWER = "answers with what is none of a gateway's answers"
_DECODER = json.JSONDecoder()
_TRIES = 6
_LONGEST_WAIT_S = 10.0

_DECIMALS = ("price", "size", *DECIMALS)
_WHOLE = ("trades", "revision")
_MS, _US = ("window", "start", "end"), ("time",)
_DIGITS, _PLACES = 38, 18
_SMALLEST = Decimal(1).scaleb(-_PLACES)


class Records(list[Mapping[str, Any]]):
    """Some windows or bars, oldest first: a mapping each, numbers as Decimal.

    ``gaps`` names what is missing in between, as REST does.
    """

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], gaps: Sequence[Mapping[str, Any]]
    ) -> None:
        super().__init__(rows)
        self.gaps = gaps

    def to_arrow(self) -> "pa.Table":
        """Return an Arrow table; needs pyarrow.

        Decimals have 18 digits behind the point, ``decimal128(38, 18)``: prices and
        sums are exact, a mean (``vwap``) is rounded to that. Times are in UTC.
        """
        import pyarrow as pa

        number = pa.decimal128(_DIGITS, _PLACES)
        types = {
            **dict.fromkeys(_DECIMALS, number),
            **dict.fromkeys(_WHOLE, pa.int64()),
            **dict.fromkeys(_MS, pa.timestamp("ms", "UTC")),
            **dict.fromkeys(_US, pa.timestamp("us", "UTC")),
        }
        names = list(dict.fromkeys(name for row in self for name in row))
        columns: dict[str, Any] = {}
        for name in names:
            values = [row.get(name) for row in self]
            if name == "vwap":
                values = [None if v is None else v.quantize(_SMALLEST) for v in values]
            columns[name] = pa.array(values, types.get(name))
        return pa.table(columns)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame of pandas; needs pandas and pyarrow.

        Decimals are Python's, with the digits that they came with.
        """
        import pandas as pd

        frame = self.to_arrow().to_pandas()
        for name in frame.columns.intersection(_DECIMALS):
            values = [row.get(name) for row in self]
            frame[name] = pd.Series(values, frame.index, dtype=object)
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Return a data frame of Polars; needs polars and pyarrow.

        Its columns are those of ``to_arrow``, decimals as well.
        """
        import polars as pl

        return pl.DataFrame(self.to_arrow())


def _exact(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: read_decimal(value) if name in _DECIMALS and value is not None else value
        for name, value in row.items()
    }


class RestError(Exception):
    """A gateway does not answer, or refuses; the message is a sentence that says why.

    Words of a gateway cannot act on a terminal. ``status`` is that of its answer, None
    if there is none.
    """

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(harmless(sentence))
        self.status = status


class RestClient:
    """Asks a gateway; ``url`` is that of its pages, with their path if they have one.

    Who asks too much is told when to come again, and is waited for. No proxy is asked
    for this machine.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout_s: float = 30.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url {url!r:.80}: must be like http://127.0.0.1:8000")
        self._url = url.partition("?")[0].rstrip("/")
        self._token = token
        self._timeout_s = timeout_s
        # An empty one goes to the host itself.
        proxies = [ProxyHandler({})] if is_loopback(parts.hostname) else []
        self._opener: OpenerDirector = build_opener(*proxies)

    def history(
        self,
        instrument: str,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> Records:
        """Return the windows in which an instrument (ISIN or code) was traded.

        As far back as the gateway's archive goes. With ``since`` all from then on, or
        the first ``limit``; without it the newest ``limit``, 1,000 unless given.
        """
        at, end = _milliseconds("since", since), _milliseconds("until", until)
        most = limit if limit is not None else 1_000 if at is None else None
        rows: list[Mapping[str, Any]] = []
        gaps: list[Mapping[str, Any]] = []
        path = f"/v1/quotes/{quote(instrument, safe='')}/history"
        while True:
            page = PAGE if most is None else min(PAGE, most - len(rows))
            answer = self._ask(path, {"from": at, "to": end, "limit": page})
            rows += answer["data"]
            gaps += [gap for gap in answer["gaps"] if gap not in gaps]
            at = answer["next"]
            if at is None or len(rows) == most:
                return Records([_exact(row) for row in rows], gaps)

    def bars(
        self,
        instrument: str,
        interval: str = "1m",
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = 300,
    ) -> Records:
        """Return the newest bars whose start is within ``since`` and ``until``."""
        asked = {
            "interval": interval,
            "from": _milliseconds("since", since),
            "to": _milliseconds("until", until),
            "limit": limit,
        }
        answer = self._ask(f"/v1/bars/{quote(instrument, safe='')}", asked)
        return Records([_exact(row) for row in answer["data"]], answer["gaps"])

    def window_texts(self, since_ms: int, until_ms: int) -> Iterator[str]:
        """Yield the JSON text of each window that ends within, the newest first.

        In the order of publication, as far back as the gateway's archive goes; some may
        come twice.
        """
        while True:
            asked = {"from": since_ms, "to": until_ms}
            text = self._fetch("/v1/windows", asked).decode()
            ends = [int(window["window"]) for window in self._read(text)["data"]]
            at = text.index('"data":[') + len('"data":[')
            while text[at] != "]":
                _, end = _DECODER.raw_decode(text, at)
                yield text[at:end]
                at = end + (text[end] == ",")
            if not ends or min(ends) <= since_ms:
                return
            # Those of one end may be in two answers.
            until_ms = min(ends) - (min(ends) == until_ms or len(ends) == 1)

    def _ask(self, path: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        return self._read(self._fetch(path, asked))

    def _fetch(self, path: str, asked: Mapping[str, Any]) -> bytes:
        query = {name: value for name, value in asked.items() if value is not None}
        request = Request(f"{self._url}{path}?{urlencode(query)}")
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        for tries in range(_TRIES):
            try:
                with self._opener.open(request, timeout=self._timeout_s) as answer:
                    return self._whole(answer.read(MOST_BYTES + 1))
            except HTTPError as error:
                with error:
                    wait_s, told = _wait_s(error), self._told(error)
                if wait_s is None or tries == _TRIES - 1:
                    raise RestError(told, error.code) from None
                time.sleep(wait_s)
            except (URLError, OSError) as error:
                reason = error.reason if isinstance(error, URLError) else error
                sentence = f"no gateway answers at {self._url}: {reason}"
                raise RestError(sentence) from error
        raise AssertionError("unreachable")

    def _whole(self, text: bytes) -> bytes:
        if len(text) > MOST_BYTES:
            raise RestError(f"{self._url} {_NO_ANSWER}: over {MOST_BYTES:,} bytes")
        return text

    def _read(self, text: bytes | str) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(text, parse_float=Decimal)
            if type(answer["data"]) is not list or type(answer["gaps"]) is not list:
                raise TypeError("data and gaps must be lists")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            sentence = f"{self._url} {_NO_ANSWER}: {error!r:.120}"
            raise RestError(sentence) from None
        return {"next": None, **answer}

    def _told(self, error: HTTPError) -> str:
        try:
            detail = json.loads(error.read(65_536))["detail"]
        except (ValueError, TypeError, KeyError, OSError):
            detail = error.reason
        return f"{self._url}: {detail!s:.500} ({error.code})"


def _milliseconds(name: str, moment: Moment | None) -> int | None:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{name} {moment}: must have a time zone")
        return round(moment.timestamp() * 1_000)
    return moment


def _wait_s(error: HTTPError) -> float | None:
    """Return how long to wait before the next try; None if that is of no use."""
    if error.code not in (429, 503):
        return None
    try:
        return min(float(error.headers["Retry-After"]), _LONGEST_WAIT_S)
    except (TypeError, ValueError):
        return None
