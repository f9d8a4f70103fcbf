"""The kit judges the clients of the repository, and finds clients that are broken."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.clauses import is_of_clients, read_clauses
from conformance.client.driven_client import DriverFailed
from conformance.conformance_command import main, read_transcripts, report_of_client
from conformance.trial_report import Report
from tests.conformance.drivers import node_driver
from tests.conformance.report import CLIENTS, client_report
from tests.paths import ROOT


def judge(command: Sequence[str], only: str = "") -> Report:
    """Return the report of a client, of those transcripts alone that try a clause.

    What never comes is not waited for long.
    """
    clauses = [one for one in read_clauses() if is_of_clients(one)]
    transcripts = read_transcripts(only=only)
    return asyncio.run(report_of_client(command, transcripts, clauses, 0.2))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_ours_keeps_every_clause_that_is_tried(client: str) -> None:
    """What it does not know of is not tried; nothing fails."""
    report = client_report(client)
    assert report.is_clean, report.to_text()
    assert report.count("passed") >= (15 if client == "go" else 33), report.to_text()


FAULTS = {
    "an older item is kept": (
        "C-9",
        "if (known && isOlder(item, known))",
        "if (false)",
    ),
    "an item of the same version is dropped": (
        "C-9",
        "item.time === known.time && item.seq < known.seq",
        "item.time === known.time",
    ),
    "a revision counts for nothing": ("C-9", "if (taken) return taken < 0;", ""),
    "zeros at the end are lost": ("C-1", "!UNSAFE.test(text)", "true"),
    "older figures are kept": ("C-10", "known?.window > figures.window", "false"),
    "an epoch is not noticed": ("C-11", "epoch === this._epoch ||", "true ||"),
    "an offset that goes back is dropped": (
        "C-12",
        "message.data.forEach((item) => this._put(item, message.window));",
        "if (message.merged !== 0) message.data.forEach((item) => this._put(item, 1));",
    ),
    "the interval is forgotten": ("C-13", "...this._calm,", ""),
    "sums are added twice": (
        "C-14",
        "trades: one.trades + other.trades,",
        "trades: one.trades + 2 * other.trades,",
    ),
    "an older day is added to": (
        "C-15",
        "this.items.set(item.isin, { ...known, day });",
        "",
    ),
    "missed trades are taken for known": (
        "C-16",
        "for (const isin of this._tradesBegun) this._tradesLost.add(isin);",
        "",
    ),
    "a piece moves the position": (
        "C-17",
        "if (message.final) this._hold",
        "this._hold",
    ),
    "nothing is resumed": (
        "C-18",
        "...(this._isComplete && { since: this.position }),",
        "",
    ),
    "missed bars are not told": ("C-19", "if (isMissed)", "if (false)"),
    "it comes back after a final code": (
        "C-20",
        "return FINAL_CODES.has(code) ||",
        "return false &&",
    ),
    "a notice is not waited for": ("C-21", "this._noticedMs ??", ""),
    "what is too fast is said at once": ("C-22", ", retryAfterMs);", ", 0);"),
    "a dead line is held for alive": ("C-5", "SILENT_HEARTBEATS * this", "9999 * this"),
    "no token is shown": (
        "C-7",
        'this._shown = this._send({ op: "auth", token: text });',
        "",
    ),
    "rows are read by the first ack": (
        "C-26",
        'message.op === "subscribe") this._fields =',
        'message.op === "subscribe") this._fields ??=',
    ),
    "fields are asked for once": ("C-27", "fields: this._fields,", ""),
    "names in updates are not looked at": (
        "C-28",
        "Object.entries(message.names ?? {})",
        'Object.entries((message.type !== "update" && message.names) || {})',
    ),
    "statuses are kept for ever": (
        "CT-1",
        "if (snapshot) this.statuses.clear();",
        "",
    ),
    "a venue is no slot": ("CT-2", '${isin}/${venue ?? ""}/', "${isin}/"),
    "the newest status is not named": (
        "CT-5",
        "...(this._statusNumber && {",
        "...(0 && {",
    ),
    "missed statuses are taken for none": (
        "CT-5",
        "this._statusEpoch === null ? 0 : null",
        "0",
    ),
    "hashes are not compared": (
        "C-30",
        "if (told.length < SHORT || !place.hash.startsWith(told))",
        "if (false)",
    ),
    "it goes on from a part of a hash": (
        "C-30",
        "place.hash.length > SHORT ? place : null",
        "place",
    ),
    "rows are not compared": ("C-31", "if (hasRows) await", "if (false) await"),
    "rows behind a snapshot are compared": (
        "C-31",
        "this.takesAll && this._isWhole && type",
        "this.takesAll && type",
    ),
    "rows by position are asked for beside the chain": (
        "C-32",
        "options.verify ? undefined : wireFields",
        "wireFields",
    ),
}
"""What is broken in a copy of tick.js, or of tick-chain.js beside it.

Each has the clause, a text, and what is in its place.
"""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_client_is_found(fault: str, tmp_path: Path) -> None:
    clause, sound, broken = FAULTS[fault]
    module = tmp_path / "tick.mjs"
    texts = [
        (ROOT / "pages" / n).read_text("utf-8") for n in ("tick.js", "tick-chain.js")
    ]
    assert sound in "".join(texts)
    for name, text in zip(("tick.mjs", "tick-chain.js"), texts, strict=True):
        (tmp_path / name).write_text(text.replace(sound, broken), "utf-8")
    report = judge(node_driver(module), only=clause)
    assert report.states()[clause] == "failed", report.to_text()


def test_a_program_that_is_no_driver_is_told_in_a_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(DriverFailed, match="is no JSON"):
        judge(["echo", "hello"])
    assert main(["client", "echo hello"]) == 2
    assert capsys.readouterr().err == (
        "tickthrottle-conformance: b'hello\\n' is no JSON\n"
    )
    assert main(["client", "cat", "--only", "of nothing"]) == 2
    assert "--only 'of nothing': no transcript has it" in capsys.readouterr().err
