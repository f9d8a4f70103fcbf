"""What answers look like, for the OpenAPI document; they are not built with these.

Answers are joined from finished JSON, so that a price keeps its text. A test holds
real answers against these schemas.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Isin = Annotated[
    str, Field(pattern="^[A-Z]{2}[0-9A-Z]{9}[0-9]$", examples=["KR7005930003"])
]
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
Decimal = Annotated[float, Field(gt=0, description="a JSON number whose text is exact")]
Trades = Annotated[int, Field(ge=0, description="how many trades this stands for")]
Count = Annotated[int, Field(ge=0, description="how many are in data")]
Epoch = Annotated[
    str | None,
    Field(description="one unbroken numbering; null before any", examples=["k3x9"]),
]
Offset = Annotated[
    int, Field(ge=0, description="how many windows came before", examples=[1235])
]


class Quote(BaseModel):
    """An issue's latest trade, with whatever further fields the feed's trades have."""

    model_config = ConfigDict(extra="allow")

    isin: Isin
    time: TimeUs
    seq: Annotated[int, Field(ge=0, description="the feed's number of the trade")]
    price: Decimal
    size: Decimal


class WindowRow(Quote):
    """An issue's latest trade of a window."""

    trades: Trades


class Quotes(BaseModel):
    """Latest trades, and the position of the stream that they are of."""

    epoch: Epoch
    offset: Offset
    window: EndMs | None
    count: Count
    data: list[Quote]


class Window(BaseModel):
    """What one job has published of a window. ``data`` is left out by rows=false."""

    epoch: Epoch
    offset: Offset
    window: EndMs
    windows: Annotated[int, Field(ge=1, description="how many windows it stands for")]
    published: Annotated[int, Field(ge=0, description="when, microseconds since 1970")]
    count: Annotated[int, Field(ge=0, description="how many issues it has")]
    trades: Trades
    data: list[WindowRow] = Field(default=[])


class Windows(BaseModel):
    """Published windows, newest first."""

    count: Count
    data: list[Window]


class ListedIssue(BaseModel):
    """An issue of the issue list; null is what the list does not say."""

    isin: Isin
    code: Annotated[str | None, Field(examples=["005930"])]
    name: Annotated[str | None, Field(examples=["Samsung Electronics"])]
    market: Annotated[str | None, Field(examples=["KOSPI"])]
    sector: Annotated[str | None, Field(examples=["Semiconductors"])]
    prev_close: Decimal | None


class IssueList(BaseModel):
    """The issue list, in the order of ISINs; empty if the gateway has none."""

    count: Count
    data: list[ListedIssue]


class ChartPoint(BaseModel):
    """An issue's latest trade of a window."""

    window: EndMs
    price: Decimal
    size: Decimal
    trades: Trades
    time: TimeUs


class Chart(BaseModel):
    """What an issue did, oldest window first; windows without a trade are left out."""

    isin: Isin
    count: Count
    data: list[ChartPoint]


class Version(BaseModel):
    """What answers."""

    name: Literal["tickthrottle"]
    version: Annotated[str, Field(examples=["0.1.0"])]
    protocol: Literal["tick.v1"]


class Live(BaseModel):
    """The process answers."""

    live: Literal[True]


class ReadyReason(BaseModel):
    """Why the gateway is not ready, and since when."""

    code: Literal[
        "feed_stale", "quiet", "redis_down", "ledger_off", "job_behind", "overloaded"
    ]
    since_ms: Annotated[int, Field(ge=0)]
    message: str


class Ready(BaseModel):
    """Whether all is well. ``clients`` and ``counters`` are for operators."""

    ready: bool
    reason: Annotated[str, Field(description="all reasons in one text")] = ""
    reasons: list[ReadyReason]
    epoch: Epoch
    offset: Offset
    window: EndMs | None
    issues: Annotated[int, Field(ge=0, description="issues that have traded")]
    clients: Annotated[int, Field(ge=0)] = 0
    counters: dict[str, int] = Field(default={})


class ProblemDetails(BaseModel):
    """Why a request was not carried out (RFC 9457)."""

    type: Annotated[str, Field(pattern="^urn:tickthrottle:problem:[a-z_]+$")]
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Annotated[str, Field(description="one sentence that names what it is")]
    code: Annotated[str, Field(pattern="^[a-z_]+$")]


QUOTE: dict[str, Any] = {
    "isin": "KR7005930003",
    "time": 1773964803811204,
    "seq": 412385,
    "price": 199500,
    "size": 40,
    "side": "S",
}
POSITION: dict[str, Any] = {"epoch": "k3x9", "offset": 1235, "window": 1773964804000}
WINDOW: dict[str, Any] = {
    **POSITION,
    "windows": 1,
    "published": 1773964804181332,
    "count": 1,
    "trades": 37,
    "data": [{**QUOTE, "trades": 37}],
}
ISSUE: dict[str, Any] = {
    "isin": "KR7005930003",
    "code": "005930",
    "name": "Samsung Electronics",
    "market": "KOSPI",
    "sector": "Semiconductors",
    "prev_close": 199400,
}
POINT: dict[str, Any] = {
    "window": 1773964804000,
    "price": 199500,
    "size": 40,
    "trades": 37,
    "time": 1773964803811204,
}
NOT_READY: dict[str, Any] = {
    "ready": False,
    "reason": "no window for 8.4 s",
    "reasons": [
        {
            "code": "feed_stale",
            "since_ms": 1773964810000,
            "message": "no window for 8.4 s",
        }
    ],
    **POSITION,
    "issues": 2879,
}

EXAMPLES: dict[type[BaseModel], dict[str, Any]] = {
    Quote: QUOTE,
    Quotes: {**POSITION, "count": 1, "data": [QUOTE]},
    Windows: {"count": 1, "data": [WINDOW]},
    IssueList: {"count": 1, "data": [ISSUE]},
    Chart: {"isin": "KR7005930003", "count": 1, "data": [POINT]},
    Version: {"name": "tickthrottle", "version": "0.1.0", "protocol": "tick.v1"},
    Live: {"live": True},
    Ready: {"ready": True, "reasons": [], **POSITION, "issues": 2879},
}
