"""Every fault that can be found: its stage, level and words, and what to do. Pure.

docs/operators.md has a line for each code.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Level = Literal["unknown", "ok", "warn", "bad"]

Stage = Literal["feed", "log", "job", "stream", "gateway", "clients"]

STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages of the pipeline, in the order in which trades pass them."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    """What is said of a fault; ``word`` is for the drawing of its stage."""

    stage: Stage
    level: Level
    word: str
    text: str
    todo: str


CODES: dict[str, FaultKind] = {
    "redis_down": FaultKind(
        *("stream", "bad", "does not answer"),
        "Redis has not answered",
        "Bring Redis back. Feeds and the job wait for it and go on by themselves.",
    ),
    "upstream_down": FaultKind(
        *("stream", "bad", "does not answer"),
        "The gateway that is followed has not answered",
        "Bring it back, or follow another one. The log lines say why there is no line; "
        "once there is one, the stream goes on where it was.",
    ),
    "unreadable": FaultKind(
        *("stream", "bad", "not readable"),
        "The data in Redis has not been readable",
        "The reason says which data. Another version of the throttle, or somebody "
        "else, has written to its keys.",
    ),
    "may_evict": FaultKind(
        *("stream", "bad", "may evict keys"),
        "Redis may forget what it acknowledged",
        "Set what the reason says at once: a key that is evicted takes trades, windows "
        "or positions with it. Then compare: tickthrottle reconcile.",
    ),
    "evicted": FaultKind(
        *("stream", "warn", "has evicted keys"),
        "Redis has evicted keys",
        "It does not any more. Compare what is left: tickthrottle reconcile. "
        "CONFIG RESETSTAT, or a restart of Redis, ends this finding.",
    ),
    "memory_short": FaultKind(
        *("stream", "warn", "memory nearly full"),
        "Redis' memory is nearly full",
        "Once it is full, Redis takes nothing more, and feeds and job wait. Raise "
        "maxmemory, or lower TICKTHROTTLE_TRADE_LOG_CAP.",
    ),
    "log_away": FaultKind(
        *("log", "bad", "does not answer"),
        "The trade log has not answered",
        "Bring the brokers of the trade log back. Feeds and the job wait for them.",
    ),
    "log_unseen": FaultKind(
        *("log", "warn", "not seen"),
        "The gateway has not seen the trade log",
        "Prices go on. Give the gateway the settings of the log that feeds and job "
        "have: TICKTHROTTLE_TRADE_LOG and TICKTHROTTLE_KAFKA_….",
    ),
    "starting": FaultKind(
        *("job", "unknown", "starting"),
        "The throttle job has been starting",
        "Nothing. It warms up, which takes about twenty seconds, and goes on where it "
        "stopped.",
    ),
    "start_fails": FaultKind(
        *("job", "bad", "does not start"),
        "The throttle job has failed to start",
        "See its log: it says what the job waits for, or why it ends. Then end it and "
        "start it again: tickthrottle throttle. Prices are old until it publishes.",
    ),
    "job_dead": FaultKind(
        *("job", "bad", "dead"),
        "The throttle job has been dead",
        "Start it again, on any machine: tickthrottle throttle. It goes on where it "
        "stopped and loses no trade.",
    ),
    "job_behind": FaultKind(
        *("job", "bad", "behind"),
        "The throttle job has been behind",
        "A job that catches up needs nothing. If it stays behind, look at its log "
        "lines. End a frozen job and start it again.",
    ),
    "ledger_off": FaultKind(
        *("job", "bad", "off balance"),
        "The ledger has been off balance",
        "tickthrottle reconcile says which trades are missing or double, and where.",
    ),
    "feed_stale": FaultKind(
        *("gateway", "bad", "hears no window"),
        "No window has reached the gateway",
        "See whether job and gateway use the same Redis and namespace; then restart "
        "the gateway.",
    ),
    "quiet": FaultKind(
        *("feed", "bad", "quiet"),
        "No trade has come in",
        "While the market is open: see whether the feed runs, and start it again. "
        "Windows go on, empty.",
    ),
    "overloaded": FaultKind(
        *("gateway", "bad", "overloaded"),
        "The gateway has been overloaded",
        "New clients are sent away, the others are served. Start another gateway, or "
        "give it more memory.",
    ),
    "worker_lost": FaultKind(
        *("gateway", "warn", "lost a worker"),
        "A worker of the gateway has been lost",
        "Nothing: the supervisor begins another one within ten seconds, and its "
        "clients come back by themselves. If it happens again, the gateway's log says "
        "whether the worker died or stood still.",
    ),
    "publish_late": FaultKind(
        *("job", "warn", "late"),
        "Windows have been published late",
        "See which step of a batch takes the time, and what else runs on the job's "
        "machine.",
    ),
    "fanout_late": FaultKind(
        *("gateway", "warn", "late"),
        "Windows have reached the clients late",
        "See what else runs on the gateway's machine; start another gateway.",
    ),
    "transaction_open": FaultKind(
        *("log", "bad", "waits for a transaction"),
        "Trades in Kafka have waited behind an open transaction",
        "Nobody reads past it until its producer commits or aborts, or the brokers end "
        "it (transaction.timeout.ms): see to that producer. kafka-transactions.sh "
        "find-hanging names it.",
    ),
    "wrong_stamps": FaultKind(
        *("log", "warn", "wrong stamps"),
        "Producers stamp entries of the topic wrongly",
        "Correct the clock, or the unit, of whoever sets the time of the records, or "
        "have the brokers stamp: message.timestamp.type=LogAppendTime. Trades that are "
        "ahead of an old stamp are refused as old_stamp.",
    ),
    "archive_away": FaultKind(
        *("stream", "warn", "archive stores nothing"),
        "The archive has stored nothing",
        "Prices go on. The reason says what is missing: make room, or bring the "
        "database back. What leaves the window log before it is stored, after a "
        "quarter of an hour, is missing for good.",
    ),
    "archive_behind": FaultKind(
        *("stream", "warn", "archive behind"),
        "The archive has been behind",
        "Prices go on. If the archive is dead, start it again: tickthrottle archive. "
        "What leaves the window log before it is stored, after a quarter of an hour, "
        "is missing for good.",
    ),
    "analytics_off": FaultKind(
        *("stream", "warn", "analytics off balance"),
        "The books of an analytics query have been off balance",
        "Prices go on. The reason says what is missing. Save the job's log lines, and "
        "compare with the books of the throttle: tickthrottle ledger.",
    ),
    "analytics_dead": FaultKind(
        *("stream", "warn", "no analytics job"),
        "The analytics job has been dead",
        "Prices go on. Start it again: tickthrottle analytics. It goes on where it "
        "stopped, as far as the log goes back.",
    ),
    "analytics_behind": FaultKind(
        *("stream", "warn", "analytics behind"),
        "An analytics query has been behind",
        "Prices go on. A query that catches up needs nothing. If it stays behind, look "
        "at the job's log lines and give it more of the machine.",
    ),
    "calendar_ends": FaultKind(
        *("feed", "warn", "calendar ends"),
        "A calendar of market hours ends",
        "After its last day holidays are taken for days of trading, so a quiet market "
        "is told as a fault. Install a newer version, or give "
        "TICKTHROTTLE_MARKET_HOURS a calendar of your own.",
    ),
    "clients_stuck": FaultKind(
        *("clients", "warn", "many stuck"),
        "Many clients have taken nothing",
        "The gateway closes a client that stays stuck. If most clients are stuck, look "
        "at the network in front of the gateway.",
    ),
}
"""Every code, a cause before what may follow from it."""

CONSEQUENCES: dict[str, frozenset[str]] = {
    "redis_down": frozenset(
        {
            *("unreadable", "job_behind", "ledger_off", "feed_stale", "quiet"),
            *("starting", "start_fails"),
            *("archive_behind", "analytics_dead", "analytics_behind"),
            *("archive_away", "memory_short"),
            # They are of windows that came before.
            *("publish_late", "fanout_late"),
        }
    ),
    "upstream_down": frozenset({"feed_stale", "quiet", "publish_late", "fanout_late"}),
    "unreadable": frozenset({"feed_stale", "ledger_off"}),
    # When the last trade came, only its stamp says.
    "wrong_stamps": frozenset({"quiet"}),
    "transaction_open": frozenset({"quiet"}),
    "log_away": frozenset(
        {
            *("job_behind", "feed_stale", "quiet", "publish_late"),
            *("start_fails", "analytics_behind"),
        }
    ),
    "start_fails": frozenset({"starting", "job_behind", "feed_stale", "publish_late"}),
    "starting": frozenset({"job_behind", "feed_stale", "publish_late"}),
    "job_dead": frozenset({"job_behind", "feed_stale", "publish_late"}),
    "job_behind": frozenset({"feed_stale", "publish_late"}),
    "publish_late": frozenset({"fanout_late"}),
}
"""What follows from a fault by itself, and is no finding of its own then."""

HIDDEN_STAGES: dict[str, dict[Stage, str]] = {
    "redis_down": {"feed": "not known", "log": "not known", "job": "not known"},
    "unreadable": {"feed": "not known", "log": "not known", "job": "not known"},
    "log_away": {
        "feed": "not known",
        "job": "waits for the log",
        "stream": "no new window",
    },
    "start_fails": {"stream": "no new window"},
    "starting": {"stream": "no new window"},
    "job_dead": {"stream": "no new window"},
    "job_behind": {"stream": "old windows"},
}
"""Stages of which nothing is known while there is a fault elsewhere, in a few words."""
