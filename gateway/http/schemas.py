"""What answers look like, for the OpenAPI document; they are not built with these.

Answers are joined from finished JSON, so that a price keeps its text. A test holds
real answers against these schemas.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ingest.series import KEY_PATTERN

Isin = Annotated[str, Field(pattern=f"^{KEY_PATTERN}$", examples=["KR7005930003"])]
EndMs = Annotated[
    int,
    Field(ge=0, description="a window's end, ms since 1970", examples=[1773964804000]),
]
TimeUs = Annotated[
    int,
    Field(
        ge=0,
        description="the exchange's clock, microseconds since 1970",
        examples=[1773964803811204],
    ),
]
_EXACT = "a JSON number whose text is exact"
Price = Annotated[float, Field(gt=0, description=_EXACT, examples=[199500])]
Size = Annotated[float, Field(gt=0, description=_EXACT, examples=[40])]
Trades = Annotated[
    int, Field(ge=0, description="how many trades this stands for", examples=[37])
]
Count = Annotated[int, Field(ge=0, description="how many are in data", examples=[1])]
Epoch = Annotated[
    str | None,
    Field(
        description="names one unbroken numbering; null before the first",
        examples=["k3x9"],
    ),
]
Offset = Annotated[
    int, Field(ge=0, description="how many windows came before", examples=[1235])
]


class Quote(BaseModel):
    """An instrument's latest trade, with all other fields of the feed's trades."""

    model_config = ConfigDict(extra="allow")

    isin: Isin
    time: TimeUs
    seq: Annotated[
        int,
        Field(ge=0, description="the feed's number of the trade", examples=[412385]),
    ]
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
    volume: float = Field(
        default_factory=float,
        ge=0,
        description=f"sum of the sizes of those that count for it, {_EXACT}; left out, "
        "as the next three, where size and price say it, and where nobody knows it",
        examples=[9170],
    )
    value: float = Field(
        default_factory=float,
        ge=0,
        description=f"sum of price times size, {_EXACT}",
        examples=[1829145000],
    )
    high: float = Field(
        default_factory=float,
        gt=0,
        description=f"highest price, {_EXACT}; left out, as low, where no trade counts "
        "for the range",
        examples=[199600],
    )
    low: float = Field(
        default_factory=float,
        gt=0,
        description=f"lowest price, {_EXACT}",
        examples=[199300],
    )


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
        Field(
            pattern="^group:(market|sector):",
            description="its key; without a name, of instruments that have none",
            examples=["group:market:KOSPI"],
        ),
    ]
    window: EndMs
    instruments: Annotated[
        int, Field(ge=0, description="instruments that traded", examples=[731])
    ]
    advancing: Annotated[
        int, Field(ge=0, description="above their previous close", examples=[412])
    ]
    declining: Annotated[
        int, Field(ge=0, description="below their previous close", examples=[251])
    ]
    unchanged: Annotated[
        int, Field(ge=0, description="at their previous close", examples=[62])
    ]
    unpriced: Annotated[
        int, Field(ge=0, description="without a previous close", examples=[6])
    ]
    trades: Annotated[int, Field(ge=0, description="trades", examples=[1310])]
    volume: Annotated[
        float, Field(ge=0, description=f"sum of sizes, {_EXACT}", examples=[48210])
    ]
    value: Annotated[
        float,
        Field(
            ge=0,
            description=f"sum of price times size, {_EXACT}",
            examples=[2918264100],
        ),
    ]
    mean_change_pct: Annotated[
        float | None,
        Field(
            description="mean change, in percent, of those with a previous close",
            examples=[0.4127],
        ),
    ]


class GroupsAnswer(BaseModel):
    """Newest figures of markets and sectors, each of the last window it traded in."""

    epoch: Epoch
    offset: Offset
    window: EndMs | None
    count: Count
    data: list[GroupAnswer]


class WindowAnswer(BaseModel):
    """What one job has published of a window.

    ``groups`` and ``data`` are left out by rows=false.
    """

    epoch: Epoch
    offset: Offset
    window: EndMs
    windows: Annotated[
        int, Field(ge=1, description="how many windows it stands for", examples=[1])
    ]
    published: Annotated[
        int,
        Field(
            ge=0,
            description="when, microseconds since 1970",
            examples=[1773964804181332],
        ),
    ]
    count: Annotated[
        int, Field(ge=0, description="how many instruments it has", examples=[1])
    ]
    trades: Trades
    groups: list[GroupAnswer] = Field(default=[])
    data: list[WindowRow] = Field(default=[])


class DamageGap(BaseModel):
    """A place of the archive that cannot be read, because a file is damaged."""

    kind: Annotated[Literal["damaged"], Field(examples=["damaged"])]
    after: Annotated[
        int | None, Field(description="the last window before it, ms", examples=[None])
    ]
    before: EndMs
    windows: Annotated[
        int | None,
        Field(
            ge=0,
            description="how many windows, or batches of bars; null where nobody knows",
            examples=[3],
        ),
    ]


class HistoryGap(BaseModel):
    """Windows that the archive does not have, or has twice, and why."""

    kind: Annotated[
        Literal["before", "trimmed", "epoch", "taken_back", "damaged"],
        Field(examples=["trimmed"]),
    ]
    after: Annotated[
        int | None, Field(description="the last window before it, ms", examples=[None])
    ]
    before: EndMs
    windows: Annotated[
        int | None,
        Field(ge=0, description="how many, null where nobody knows", examples=[3]),
    ]


class WindowsAnswer(BaseModel):
    """Published windows, newest first; ``gaps`` are those that cannot be read."""

    count: Count
    gaps: Annotated[list[DamageGap], Field(examples=[[]])]
    data: list[WindowAnswer]


class ListedInstrument(BaseModel):
    """An instrument of the instrument table; null is what nobody has said."""

    isin: Isin
    code: Annotated[str | None, Field(examples=["005930"])]
    name: Annotated[str | None, Field(examples=["Samsung Electronics"])]
    market: Annotated[str | None, Field(examples=["KOSPI"])]
    sector: Annotated[str | None, Field(examples=["Semiconductors"])]
    prev_close: Price | None
    english_name: Annotated[str | None, Field(examples=["Samsung Electronics"])]
    currency: Annotated[str | None, Field(examples=["KRW"])]
    listed_shares: Annotated[int | None, Field(examples=[5919637922])]
    tick_table: Annotated[str | None, Field(examples=["krx"])]
    status: Annotated[str | None, Field(examples=["halted"])]


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


class History(Chart):
    """An instrument's history; ``next`` is where to go on from, null at its end."""

    next: Annotated[
        int | None,
        Field(description="the window that would come next", examples=[None]),
    ]
    gaps: Annotated[list[HistoryGap], Field(examples=[[]])]


StartMs = Annotated[
    int,
    Field(ge=0, description="first moment, ms since 1970", examples=[1773964800000]),
]
SpanEndMs = Annotated[
    int,
    Field(ge=0, description="moment after it, ms since 1970", examples=[1773964860000]),
]
SpanPrice = Annotated[
    float | None,
    Field(
        gt=0,
        description=f"{_EXACT}; null where no trade counts for it",
        examples=[199500],
    ),
]
Sum = Annotated[
    float | None,
    Field(
        description=f"{_EXACT}; null where it has more than 20 whole digits",
        examples=[9180],
    ),
]
Vwap = Annotated[
    float | None,
    Field(
        description="value / volume, half even; null where no volume is known",
        examples=[199412.3456],
    ),
]
Percent = Annotated[float | None, Field(description="per cent", examples=[-0.8101])]
Change = Annotated[float | None, Field(description=_EXACT, examples=[-1650])]


class TradedSpan(BaseModel):
    """What was traded in a span of the exchange's clock."""

    start: StartMs
    end: SpanEndMs
    open: SpanPrice
    high: SpanPrice
    low: SpanPrice
    close: SpanPrice
    volume: Sum
    value: Sum
    trades: Annotated[int, Field(ge=0, examples=[37])]
    vwap: Vwap


class DayAnswer(TradedSpan):
    """An instrument's newest day so far, and its change against the previous close.

    As of the quote's own trade: ``close`` is its price. Where it is not known, the
    newest bar of a day is told in its place.
    """

    end: Annotated[  # type: ignore[assignment]
        int | None,
        Field(description="ms since 1970; null where no bar of the day says it"),
    ]
    prev_close: Annotated[float | None, Field(description=_EXACT, examples=[203650])]
    change: Change
    percent: Percent
    regular: "SessionAnswer | None" = Field(
        default=None,
        description="the regular session of the day, where the series @regular is kept "
        "and has traded; the change is that of its close",
    )


class SessionAnswer(BaseModel):
    """What was traded in a session of an instrument's day."""

    open: SpanPrice
    high: SpanPrice
    low: SpanPrice
    close: SpanPrice
    volume: Sum
    value: Sum
    trades: Annotated[int, Field(ge=0, examples=[37])]


class BarAnswer(TradedSpan):
    """A bar. ``closed``: its end has passed; ``revision``: late or taken back."""

    isin: Isin
    closed: bool
    revision: Annotated[int, Field(ge=0, examples=[0])]


class BarsAnswer(BaseModel):
    """Bars of an instrument, oldest first; spans without a trade have none.

    ``gaps`` are those that cannot be read.
    """

    isin: Isin
    interval: Literal["1m", "5m", "15m", "1h", "1d"]
    count: Count
    gaps: Annotated[list[DamageGap], Field(examples=[[]])]
    data: list[BarAnswer]


class MoverAnswer(BaseModel):
    """An instrument in a list of movers; ``change`` is close less open."""

    isin: Isin
    open: SpanPrice
    high: SpanPrice
    low: SpanPrice
    close: SpanPrice
    volume: Sum
    value: Sum
    trades: Annotated[int, Field(ge=1, examples=[37])]
    vwap: Vwap
    change: Change
    percent: Percent


class MoversAnswer(BaseModel):
    """What rose, fell and traded most in one span of the exchange's clock."""

    epoch: Annotated[str, Field(examples=["b7x1"])]
    sequence: Annotated[int, Field(ge=0, examples=[412])]
    start: StartMs
    end: SpanEndMs
    instruments: Annotated[
        int, Field(ge=0, description="instruments that traded", examples=[9])
    ]
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
    seq: Annotated[int, Field(ge=0, examples=[412385])]
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
    version: Annotated[str, Field(examples=["0.1.0"])]
    protocol: Literal["tick.v1"]
    pages: Annotated[list[str], Field(examples=[["/"]])]


class MarketHoursOf(BaseModel):
    """Whether a market trades; times are ms.

    ``closes`` is null while it does not, and of what never closes. ``opens`` is when
    the next session begins, null if nobody knows.
    """

    market: Annotated[str, Field(examples=["XKRX"])]
    zone: Annotated[str, Field(examples=["Asia/Seoul"])]
    open: Annotated[bool, Field(examples=[False])]
    closes: Annotated[int | None, Field(examples=[None])]
    opens: Annotated[int | None, Field(examples=[1795996800000])]


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
        "starting",
        "ledger_off",
        "job_behind",
        "overloaded",
    ]
    since_ms: Annotated[int, Field(ge=0, examples=[1773964810000])]
    message: Annotated[str, Field(examples=["no window for 8.4 s"])]


class Ready(BaseModel):
    """Whether all is well. ``clients`` and ``counters`` are for operators."""

    ready: bool
    reasons: Annotated[list[ReadyReason], Field(examples=[[]])]
    epoch: Epoch
    offset: Offset
    window: EndMs | None
    instruments: Annotated[
        int, Field(ge=0, description="instruments that have traded", examples=[2879])
    ]
    clients: Annotated[int, Field(ge=0)] = 0
    counters: dict[str, int] = Field(default={})


class NotReady(Ready):
    """Not ready, and every reason why."""

    ready: Literal[False]
    reason: Annotated[
        str,
        Field(description="all reasons in one text", examples=["no window for 8.4 s"]),
    ]
    reasons: list[ReadyReason]


class ProblemDetails(BaseModel):
    """Why a request was not carried out (RFC 9457)."""

    type: Annotated[str, Field(pattern="^urn:tickthrottle:problem:[a-z_]+$")]
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Annotated[str, Field(description="one sentence that says what is wrong")]
    code: Annotated[str, Field(pattern="^[a-z_]+$")]
