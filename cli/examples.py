"""What the help of each command ends with: lines that can be copied. Pure."""

EXAMPLES = {
    "run": (
        "tickthrottle run --port 8123 --rate 900",
        "tickthrottle run --tape day.csv.gz --speed 10",
        "tickthrottle run --feed upbit",
        "tickthrottle run --feed none --trade-log kafka --kafka-topic executions",
    ),
    "throttle": (
        "tickthrottle throttle --redis-url redis://10.0.0.5:6379/0",
        "tickthrottle throttle --standby",
    ),
    "analytics": (
        "tickthrottle analytics --only bars",
        "tickthrottle analytics --only bars,movers,moves",
        "TICKTHROTTLE_ANALYTICS_CHECKPOINT=s3a://ticks/state tickthrottle analytics",
    ),
    "prepare": ("tickthrottle prepare",),
    "gateway": (
        "tickthrottle gateway --host 0.0.0.0 --port 8100",
        "tickthrottle gateway --workers 4",
        "tickthrottle gateway --follow wss://prices.example",
    ),
    "archive": (
        "tickthrottle archive --dir /var/lib/tickthrottle",
        "tickthrottle archive --postgres postgresql://tick@10.0.0.7/prices",
        "tickthrottle archive --show",
    ),
    "simulate": (
        "tickthrottle simulate --rate 900 --seconds 60",
        "tickthrottle simulate --profile 900:60s,900..5000:60s",
    ),
    "replay": (
        "tickthrottle replay day.csv.gz --speed 10 --report feed.json",
        "tickthrottle replay day.csv --map isin=symbol,price=px --form time-unit=ns",
        "tickthrottle replay --archive 2026-03-20 --speed 10",
    ),
    "ingest": (
        "feed | tickthrottle ingest - --map isin=symbol,price=px --form time-unit=ms",
        "tickthrottle ingest trades.fifo --follow --instruments instruments.csv",
        "tickthrottle ingest day.csv --map isin=ticker --venue XNAS "
        "--form leave-out=correction",
    ),
    "inspect": (
        "tickthrottle inspect day.csv.zst",
        "tickthrottle inspect day.parquet --instruments instruments.csv",
    ),
    "backtest": (
        "tickthrottle backtest day.csv.gz --out day.parquet",
        "tickthrottle backtest day.csv --map isin=ticker --venue XNAS --out d.parquet",
    ),
    "decode": (
        "tickthrottle decode values.jsonl --decoder executions:decode",
        "tickthrottle decode value.bin --whole --decoder executions:decode --json",
    ),
    "feed": (
        "tickthrottle feed upbit --record day.jsonl.gz",
        "tickthrottle feed binance --symbols BTCUSDT,ETHUSDT",
    ),
    "intake": (
        "tickthrottle intake --port 8010",
        "TICKTHROTTLE_TOKEN_KEY_FILE=key.txt tickthrottle intake --host 0.0.0.0",
    ),
    "topic": ("tickthrottle topic --partitions 8 --kafka-servers 10.0.0.6:9092",),
    "key": (
        "tickthrottle key BTC ETH --venue XMKT",
        "tickthrottle key - --venue XMKT --list < symbols.txt | "
        "tickthrottle instruments load -",
    ),
    "instruments load": (
        "tickthrottle instruments load instruments.csv",
        "tickthrottle instruments load closes.csv --update",
        "tickthrottle instruments load coins.csv --venue XMKT",
        "tickthrottle instruments load krx.csv"
        " --form encoding=cp949 --map isin=표준코드",
    ),
    "instruments show": (
        "tickthrottle instruments show 005930",
        "tickthrottle instruments show --market KOSPI --csv",
    ),
    "instruments history": ("tickthrottle instruments history KR7005930003",),
    "instruments simulated": ("tickthrottle instruments simulated --instruments 100",),
    "watch": (
        "tickthrottle watch 005930 000660",
        "tickthrottle watch market:KOSPI --order change",
        "tickthrottle watch '*' --json | jq .price",
    ),
    "status": ("tickthrottle status --url http://127.0.0.1:8001",),
    "ledger": ("tickthrottle ledger --batches 5",),
    "windows": (
        "tickthrottle windows --limit 5",
        "tickthrottle windows --from 2026-03-20T00:00:04 --isin KR7005930003",
    ),
    "trades": (
        "tickthrottle trades --isin KR7005930003",
        "tickthrottle trades --dead --reason bad_price --json",
    ),
    "rebuild": ("tickthrottle rebuild --from 2026-03-20T00:00:04",),
    "verify": (
        "tickthrottle verify",
        "tickthrottle verify --archive-dir /var/lib/tickthrottle --from 2026-03-20",
        "tickthrottle verify --gateway https://prices.example",
    ),
    "reconcile": (
        "tickthrottle reconcile --acknowledged feed.json",
        "tickthrottle reconcile --archive-dir /var/lib/tickthrottle",
        "tickthrottle reconcile --archive-dir /var/lib/tickthrottle --day 2026-03-20",
    ),
    "state": ("tickthrottle state --isin KR7005930003 --limit 5",),
    "topology": ("tickthrottle topology --mermaid",),
    "load": (
        "tickthrottle load --scenario standard --out report",
        "tickthrottle load --gateway http://127.0.0.1:8000 --fail-if 'lag.p99>250ms'",
    ),
}
"""Examples of each command, by its name; one of a group has the group's before it."""


def examples_of(command: str) -> str:
    """Return the examples of a command, one a line, kept as they are."""
    # Without the mark, lines would be joined to a paragraph.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])))
