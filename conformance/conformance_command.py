"""The command ``tickthrottle-conformance``: judges clients and servers of tick.v1."""

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from websockets.exceptions import WebSocketException

from conformance.clauses import is_of_clients, read_clauses
from conformance.client.driven_client import DriverFailed
from conformance.client.player import judge_client
from conformance.client.transcript import (
    BadTranscript,
    Transcript,
    parse_transcripts,
)
from conformance.server.judged_server import Server
from conformance.server.server_trials import judge_server
from conformance.server.signed_token import full_token
from conformance.trial_report import Report, markdown_table

TRANSCRIPTS = Path(__file__).with_name("transcripts")


def read_transcripts(folder: Path = TRANSCRIPTS, only: str = "") -> list[Transcript]:
    """Return the transcripts of a folder, those whose title or clauses have a word.

    Raises BadTranscript.
    """
    found = [
        transcript
        for path in sorted(folder.glob("*.txt"))
        for transcript in parse_transcripts(path.read_text("utf-8"), path.name)
    ]
    return [one for one in found if only in one.title or only in one.clauses]


async def report_of_client(
    command: Sequence[str],
    transcripts: Sequence[Transcript],
    clauses: Sequence[str],
    patience: float = 1.0,
) -> Report:
    """Play transcripts to a client. Raises DriverFailed, OSError."""
    name, trials = await judge_client(command, transcripts, patience)
    return Report(name, clauses, trials)


def _client(chosen: argparse.Namespace) -> Report:
    transcripts = read_transcripts(chosen.transcripts, chosen.only)
    if not transcripts:
        raise BadTranscript(f"--only {chosen.only!r}: no transcript has it")
    clauses = [one for one in read_clauses(chosen.spec) if is_of_clients(one)]
    command = [word for part in chosen.command for word in shlex.split(part)]
    return asyncio.run(report_of_client(command, transcripts, clauses, chosen.patience))


def report_of_server(server: Server, clauses: Sequence[str], only: str = "") -> Report:
    """Judge a server. Raises OSError if there is none."""
    return Report(server.url, clauses, asyncio.run(judge_server(server, only)))


def _server(chosen: argparse.Namespace) -> Report:
    clauses = [one for one in read_clauses(chosen.spec) if not is_of_clients(one)]
    keys = tuple(chosen.keys.split(","))
    secret = chosen.token_key.read_bytes().strip() if chosen.token_key else b""
    token = full_token(secret) if secret else chosen.token
    line = chosen.url, keys, chosen.windows, chosen.patience
    server = Server(*line, token, secret)
    return report_of_server(server, clauses, chosen.only)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "tickthrottle-conformance", description=(__doc__ or "").partition(": ")[2]
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", type=Path, help="write the report there, too")
    common.add_argument("--spec", type=Path, help="folder of the specification")
    common.add_argument("--only", default="", help="a clause, or words of a title")
    common.add_argument(
        "--patience", type=float, default=1.0, help="so many times as long to wait"
    )
    client = kinds.add_parser("client", parents=[common], help="judge a client")
    client.add_argument("command", nargs="+", help="the program that drives it")
    client.add_argument("--transcripts", type=Path, default=TRANSCRIPTS)
    server = kinds.add_parser("server", parents=[common], help="judge a server")
    server.add_argument("url", help="ws://host:port/v1/stream")
    server.add_argument("--keys", required=True, help="ISINs that trade, with commas")
    server.add_argument("--windows", type=int, default=3, help="to follow")
    server.add_argument("--token", default="", help="to show on each connection")
    server.add_argument(
        "--token-key",
        type=Path,
        help="file of the secret by which the server checks tokens (HS256), to make "
        "those that it has to refuse or to narrow",
    )
    table = kinds.add_parser("table", help="print reports in JSON as a Markdown table")
    table.add_argument("reports", nargs="+", type=Path)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Judge, print the report; return 1 if a clause is broken, 2 if none was judged."""
    chosen = _parser().parse_args(words)
    try:
        if chosen.kind == "table":
            reports = [json.loads(path.read_text("utf-8")) for path in chosen.reports]
            sys.stdout.write(markdown_table(reports))
            return 0
        report = _client(chosen) if chosen.kind == "client" else _server(chosen)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    except (DriverFailed, OSError, ValueError, WebSocketException) as error:
        sys.stderr.write(f"tickthrottle-conformance: {error}\n")
        return 2
    sys.stdout.write(report.to_text() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
