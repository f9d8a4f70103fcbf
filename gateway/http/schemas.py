"""What answers look like, for the OpenAPI document; they are not built with these.

Answers are joined from finished JSON, so that a price keeps its text. A test holds
real answers against these schemas.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ingest.series import KEY_PATTERN


def shown(example: Any, description: str | None = None, **rules: Any) -> Any:
    """Describe a figure: an example of it, ``...`` for none, and its rules."""
    examples = None if example is ... else [example]
    return Field(description=description, examples=examples, **rules)


Isin = Annotated[str, shown("KR7005930003", pattern=f"^{KEY_PATTERN}$")]
EndMs = Annotated[int, shown(1773964804000, "a window's end, ms since 1970", ge=0)]
TimeUs = Annotated[
    int, shown(1773964803811204, "the exchange's clock, microseconds since 1970", ge=0)
]
_EXACT = "a JSON number whose text is exact"
_LEFT_OUT: dict[str, Any] = {"default_factory": float}
Price = Annotated[float, shown(199500, _EXACT, gt=0)]
Size = Annotated[float, shown(40, _EXACT, gt=0)]
Trades = Annotated[int, shown(37, "how many trades this stands for", ge=0)]
Count = Annotated[int, shown(1, "how many are in data", ge=0)]
Epoch = Annotated[
    str | None, shown("k3x9", "names one unbroken numbering; null before the first")
]
Offset = Annotated[int, shown(1235, "how many windows came before", ge=0)]


class Quote(BaseModel):
    """An instrument's latest trade, with all other fields of the feed's trades."""

    model_config = ConfigDict(extra="allow")

    isin: Isin
    time: TimeUs
    seq: Annotated[int, shown(412385, "the feed's number of the trade", ge=0)]
    price: Price
    size: Size
    # Never null, but left out.
    revision: int = Field(
        default_factory=int,
        ge=1,
        description="how often a trade of the instrument that was shown was taken "
        "back; left out while none was",
    )

    day: "DayAnswer | None" = Field(default=None, description="with fields=day")
    # Never null, but left out.
    series: dict[str, "Quote"] = Field(
        default_factory=dict,
        description="with fields=series: the quotes of its series, by their names",
    )


class WindowRow(Quote):
    """An instrument's latest trade of a window, and what all its trades add up to.

    A row with the ``time`` and ``seq`` of the row before stands for trades that came
    too late to be shown.
    """

    trades: Trades
    # Never null: they are left out, and so without a default that a client might take.
    volume: float = shown(
        9170,
        f"sum of the sizes of those that count for it, {_EXACT}; left out, as the next "
        "three, where size and price say it, and where nobody knows it",
        **_LEFT_OUT,
        ge=0,
    )
    value: float = shown(
        1829145000, f"sum of price times size, {_EXACT}", **_LEFT_OUT, ge=0
    )
    high: float = shown(
        199600,
        f"highest price, {_EXACT}; left out, as low, where no trade counts for the "
        "range",
        **_LEFT_OUT,
        gt=0,
    )
    low: float = shown(199300, f"lowest price, {_EXACT}", **_LEFT_OUT, gt=0)


class Quotes(BaseModel):
    """Latest trades, and the position of the stream that they are of."""

    epoch: Epoch
    offset: Offset
    window: EndMs | None
    count: Count
    data: list[Quote]


class GroupAnswer(BaseModel):
    """What a window says of a market or sector: the last window in which it traded."""

    group: Annotated[
        str,
        shown(
            "group:market:KOSPI",
            "its key; without a name, of instruments that have none",
            pattern="^group:(market|sector):",
        ),
    ]
    window: EndMs
    instruments: Annotated[int, shown(731, "instruments that traded", ge=0)]
    advancing: Annotated[int, shown(412, "above their previous close", ge=0)]
    declining: Annotated[int, shown(251, "below their previous close", ge=0)]
    unchanged: Annotated[int, shown(62, "at their previous close", ge=0)]
    unpriced: Annotated[int, shown(6, "without a previous close", ge=0)]
    trades: Annotated[int, shown(1310, "trades", ge=0)]
    volume: Annotated[float, shown(48210, f"sum of sizes, {_EXACT}", ge=0)]
    value: Annotated[
        float, shown(2918264100, f"sum of price times size, {_EXACT}", ge=0)
    ]
    mean_change_pct: Annotated[
        float | None,
        shown(0.4127, "mean change, in percent, of those with a previous close"),
    ]


class LastTrade(BaseModel):
    """The newest trade that the log held before a status."""

    time: TimeUs
    seq: Annotated[int, shown(412385, ge=0)]
    price: Price


class StatusAnswer(BaseModel):
    """The newest status of an instrument, of a venue of it, of its kind."""

    isin: Isin
    status: Literal[
        "trading",
        "halted",
        "volatility_interruption",
        "auction",
        "limit_up",
        "limit_down",
        "price_bands",
    ]
    time: TimeUs
    number: Annotated[int, shown(37, "counts the statuses of all instruments", ge=1)]
    taken: Annotated[
        int, shown(1773964803813001, "when it was added, microseconds since 1970", ge=0)
    ]
    # Never null, but left out.
    venue: str = Field(default="", description="of which it is alone")
    until: int = Field(default=0, description="when it is to end, microseconds")
    expected_price: Price = Field(**_LEFT_OUT)
    expected_size: Size = Field(**_LEFT_OUT)
    lower: Price = Field(**_LEFT_OUT)
    upper: Price = Field(**_LEFT_OUT)
    reason: str = Field(default="", description="the exchange's words, or a code")
    last: LastTrade = Field(
        default_factory=lambda: LastTrade(time=0, seq=0, price=1),
        description="left out where it is not known",
    )


class StatusesAnswer(BaseModel):
    """Newest statuses, as of a number."""

    epoch: Annotated[str, shown("5f0c2a91", "of the numbers; empty before the first")]
    number: Annotated[int, shown(37, "of the newest status", ge=0)]
    count: Count
    data: list[StatusAnswer]


class GroupsAnswer(BaseModel):
    """Newest figures of markets and sectors, each of the last window it traded in."""

    epoch: Epoch
    offset: Offset
    window: EndMs | None
    count: Count
    data: list[GroupAnswer]


LINK = (
    "4IcxBE-7GLSwNLgT1UxShN44_rP1a2jyhegLOIe1UUo 1773964804000 37 9170 1829145000 "
    "ablUfJ6uVzH9kJbqW0xIqvozae5hJka_kdMHZ_IQNn0"
)


class WindowAnswer(BaseModel):
    """What one job has published of a window.

    ``groups`` and ``data`` are left out by rows=false.
    """

    epoch: Epoch
    offset: Offset
    window: EndMs
    windows: Annotated[int, shown(1, "how many windows it stands for", ge=1)]
    published: Annotated[
        int, shown(1773964804181332, "when, microseconds since 1970", ge=0)
    ]
    count: Annotated[int, shown(1, "how many rows it has, also of series", ge=0)]
    trades: Trades
    chain: Annotated[list[str], shown([LINK], "its hash, and its link")] = Field(
        default=[]
    )
    groups: list[GroupAnswer] = Field(default=[])
    data: list[WindowRow] = Field(default=[])


class HistoryGap(BaseModel):
    """Windows that the archive does not have, or has twice, and why."""

    kind: Annotated[
        Literal["before", "trimmed", "epoch", "taken_back", "damaged"], shown("trimmed")
    ]
    after: Annotated[int | None, shown(None, "the last window before it, ms")]
    before: EndMs
    windows: Annotated[int | None, shown(3, "how many, null where nobody knows", ge=0)]


class DamageGap(HistoryGap):
    """A place of the archive that cannot be read, because a file is damaged."""

    kind: Annotated[Literal["damaged"], shown("damaged")]
    windows: Annotated[
        int | None,
        shown(
            3,
            "how many windows, or batches of bars; null where nobody knows",
            ge=0,
        ),
    ]


class WindowsAnswer(BaseModel):
    """Published windows, newest first; ``gaps`` are those that cannot be read."""

    count: Count
    gaps: Annotated[list[DamageGap], shown([])]
    data: list[WindowAnswer]


class ListedInstrument(BaseModel):
    """An instrument of the instrument table; null is what nobody has said."""

    isin: Isin
    code: Annotated[str | None, shown("005930")]
    name: Annotated[str | None, shown("Samsung Electronics")]
    market: Annotated[str | None, shown("KOSPI")]
    sector: Annotated[str | None, shown("Semiconductors")]
    prev_close: Price | None
    english_name: Annotated[str | None, shown("Samsung Electronics")]
    currency: Annotated[str | None, shown("KRW")]
    listed_shares: Annotated[int | None, shown(5919637922)]
    tick_table: Annotated[str | None, shown("krx")]
    status: Annotated[str | None, shown("halted")]


class ListedInstruments(BaseModel):
    """The instrument list, in the order of ISINs; empty if the gateway has none."""

    count: Count
    data: list[ListedInstrument]


class ChartPoint(BaseModel):
    """An instrument's latest trade of a window."""

    window: EndMs
    price: Price
    size: Size
    trades: Trades
    time: TimeUs


class Chart(BaseModel):
    """What an instrument did, oldest window first, without windows of no trade."""

    isin: Isin
    count: Count
    data: list[ChartPoint]


class Trend(BaseModel):
    """An instrument's closes, the last of the minute that ends at ``end``."""

    isin: Isin
    closes: Annotated[
        list[Price | None],
        shown([199500, None, 199600], "null: no trade in that minute", max_length=30),
    ]


class TrendsAnswer(BaseModel):
    """Closes of the newest whole minutes, in the order of ISINs.

    ``end`` is null where no whole minute is known.
    """

    end: Annotated[int | None, shown(1773964860000, "the last minute's end, ms")]
    step: Annotated[int, shown(60000, "between two closes, ms")]
    count: Count
    left_out: Annotated[int, shown(0, "instruments there was no room for", ge=0)]
    data: list[Trend]


class History(Chart):
    """An instrument's history; ``next`` is where to go on from, null at its end."""

    next: Annotated[int | None, shown(None, "the window that would come next")]
    gaps: Annotated[list[HistoryGap], shown([])]


StartMs = Annotated[int, shown(1773964800000, "first moment, ms since 1970", ge=0)]
SpanEndMs = Annotated[int, shown(1773964860000, "moment after it, ms since 1970", ge=0)]
SpanPrice = Annotated[
    float | None, shown(199500, f"{_EXACT}; null where no trade counts for it", gt=0)
]
Sum = Annotated[
    float | None, shown(9180, f"{_EXACT}; null where it has more than 20 whole digits")
]
Vwap = Annotated[
    float | None,
    shown(199412.3456, "value / volume, half even; null where no volume is known"),
]
Percent = Annotated[float | None, shown(-0.8101, "per cent")]
Change = Annotated[float | None, shown(-1650, _EXACT)]


class SessionAnswer(BaseModel):
    """What was traded in a session of an instrument's day."""

    open: SpanPrice
    high: SpanPrice
    low: SpanPrice
    close: SpanPrice
    volume: Sum
    value: Sum
    trades: Annotated[int, shown(37, ge=0)]


class TradedSpan(SessionAnswer):
    """What was traded in a span of the exchange's clock."""

    start: StartMs
    end: SpanEndMs
    vwap: Vwap


class DayAnswer(TradedSpan):
    """An instrument's newest day so far, and its change against the previous close.

    As of the quote's own trade: ``close`` is its price. Where it is not known, the
    newest bar of a day is told in its place.
    """

    end: Annotated[  # type: ignore[assignment]
        int | None, shown(..., "ms since 1970; null where no bar of the day says it")
    ]
    prev_close: Annotated[float | None, shown(203650, _EXACT)]
    change: Change
    percent: Percent
    regular: SessionAnswer | None = Field(
        default=None,
        description="the regular session of the day, where the series @regular is kept "
        "and has traded; the change is that of its close",
    )


class BarAnswer(TradedSpan):
    """A bar. ``closed``: its end has passed; ``revision``: late or taken back."""

    isin: Isin
    closed: bool
    revision: Annotated[int, shown(0, ge=0)]


class BarsAnswer(BaseModel):
    """Bars of an instrument, oldest first; spans without a trade have none.

    ``gaps`` are those that cannot be read.
    """

    isin: Isin
    interval: Literal["1m", "5m", "15m", "1h", "1d"]
    count: Count
    gaps: Annotated[list[DamageGap], shown([])]
    data: list[BarAnswer]


class MoverAnswer(SessionAnswer):
    """An instrument in a list of movers; ``change`` is close less open."""

    isin: Isin
    trades: Annotated[int, shown(37, ge=1)]
    vwap: Vwap
    change: Change
    percent: Percent


class MoversAnswer(BaseModel):
    """What rose, fell and traded most in one span of the exchange's clock."""

    epoch: Annotated[str, shown("b7x1")]
    sequence: Annotated[int, shown(412, ge=0)]
    start: StartMs
    end: SpanEndMs
    instruments: Annotated[int, shown(9, "instruments that traded", ge=0)]
    gainers: list[MoverAnswer]
    losers: list[MoverAnswer]
    value: list[MoverAnswer]
    volume: list[MoverAnswer]


class DayPricesAnswer(BaseModel):
    """The prices of an instrument's newest day."""

    isin: Isin
    start: StartMs
    end: SpanEndMs
    open: SpanPrice
    high: SpanPrice
    low: SpanPrice
    close: SpanPrice


class DaysAnswer(BaseModel):
    """The newest day of every instrument that has a quote and a bar, by ISIN."""

    count: Count
    data: list[DayPricesAnswer]


class BurstAnswer(TradedSpan):
    """Trades of an instrument that followed one another without a pause."""

    isin: Isin
    percent: Percent


class BurstsAnswer(BaseModel):
    """Bursts that have ended, newest first."""

    count: Count
    data: list[BurstAnswer]


class MoveAnswer(BaseModel):
    """A price that went far within seconds, between two trades."""

    isin: Isin
    start: TimeUs
    end: TimeUs
    seq: Annotated[int, shown(412385, ge=0)]
    from_price: Annotated[Price, Field(alias="from")]
    to: Price
    percent: Percent


class MovesAnswer(BaseModel):
    """Moves, newest first."""

    count: Count
    data: list[MoveAnswer]


class Version(BaseModel):
    """What answers; ``pages`` are the paths of its web pages."""

    name: Literal["tickthrottle"]
    version: Annotated[str, shown("0.1.0")]
    protocol: Literal["tick.v1"]
    pages: Annotated[list[str], shown(["/"])]


class MarketHoursOf(BaseModel):
    """Whether a market trades; times are ms.

    ``closes`` is null while it does not, and of what never closes. ``opens`` is when
    the next session begins, null if nobody knows.
    """

    market: Annotated[str, shown("XKRX")]
    zone: Annotated[str, shown("Asia/Seoul")]
    open: Annotated[bool, shown(False)]
    closes: Annotated[int | None, shown(None)]
    opens: Annotated[int | None, shown(1795996800000)]


class MarketHoursAnswer(BaseModel):
    """The markets whose hours are known."""

    count: int
    data: list[MarketHoursOf]


class Live(BaseModel):
    """The process answers."""

    live: Literal[True]


class ReadyReason(BaseModel):
    """Why the gateway is not ready, and since when."""

    code: Literal[
        "feed_stale",
        "quiet",
        "redis_down",
        "upstream_down",
        "starting",
        "ledger_off",
        "job_behind",
        "overloaded",
    ]
    since_ms: Annotated[int, shown(1773964810000, ge=0)]
    message: Annotated[str, shown("no window for 8.4 s")]


class Followed(BaseModel):
    """The gateway that is followed instead of Redis."""

    url: Annotated[str, shown("wss://prices.example")]
    levels: Annotated[int, shown(1, "gateways between this one and Redis", ge=0)]
    behind: Annotated[int, shown(0, "windows that it has and this one lacks", ge=0)]


class Ready(BaseModel):
    """Whether all is well. ``clients`` and ``counters`` are for operators."""

    ready: bool
    reasons: Annotated[list[ReadyReason], shown([])]
    epoch: Epoch
    offset: Offset
    window: EndMs | None
    instruments: Annotated[int, shown(2879, "instruments that have traded", ge=0)]
    upstream: Followed | None = None
    clients: Annotated[int, Field(ge=0)] = 0
    counters: dict[str, int] = Field(default={})


class NotReady(Ready):
    """Not ready, and every reason why."""

    ready: Literal[False]
    reason: Annotated[str, shown("no window for 8.4 s", "all reasons in one text")]
    reasons: list[ReadyReason]


class ProblemDetails(BaseModel):
    """Why a request was not carried out (RFC 9457)."""

    type: Annotated[str, Field(pattern="^urn:tickthrottle:problem:[a-z_]+$")]
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Annotated[str, shown(..., "one sentence that says what is wrong")]
    code: Annotated[str, Field(pattern="^[a-z_]+$")]
