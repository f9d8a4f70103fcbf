"""`tickthrottle load`, from its options to its report and its verdict."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import redis
from pydantic import ValidationError
from rich.console import Console

from bench.load.console import Progress
from bench.load.crowd import CrowdLost
from bench.load.deployment import Deployment, DeploymentError, attached, local
from bench.load.feeding import FeedFailed
from bench.load.plan import Choices, plan_of
from bench.load.report import ReportError, read, write
from bench.load.results import Result
from bench.load.run import EndedTooSoon, carry_out
from bench.load.standing import NoStream
from bench.load.terminal import summary
from ingest.masking import server_address
from ingest.settings import IngestSettings
from ingest.tape import TapeError

__all__ = ["Choices", "LoadFailed", "render_again", "run_command"]


class LoadFailed(RuntimeError):
    """The load test could not be carried out; the message says why."""


def run_command(choices: Choices) -> bool:
    """Carry out what was asked for, leave the report, say whether it held.

    Raises ValueError for options that make no sense, and LoadFailed.
    """
    plan = replace(plan_of(choices), token=_token(choices))
    console = Console(stderr=True, highlight=False)
    try:
        # What cannot be fed or asked for is told before anything is started.
        issues = plan.feed.isins()
        plan.audience.members(issues)
        with _deployment(choices, console) as deployment, Progress(console) as progress:
            result = carry_out(plan, issues, deployment, progress)
    except (CrowdLost, DeploymentError, FeedFailed, NoStream, TapeError) as error:
        raise LoadFailed(str(error)) from error
    except EndedTooSoon:
        raise LoadFailed("ended before anything was measured") from None
    except redis.RedisError as error:
        raise LoadFailed(f"redis_url: {error}") from error
    json_path, page_path = _paths(choices.out)
    _write(result, json_path, page_path)
    console.print(summary(result))
    console.print(f"Report: {page_path} and {json_path}", soft_wrap=True)
    return result.is_passed


def render_again(report: Path, out: Path | None) -> None:
    """Make the page of a report's JSON anew. Raises LoadFailed."""
    try:
        result = read(report)
    except ReportError as error:
        raise LoadFailed(str(error)) from error
    _write(result, None, _paths(out or report.with_suffix(""))[1])


def _token(choices: Choices) -> str | None:
    path = choices.token_file
    if path is None:
        return None
    if not choices.gateways:
        raise ValueError(f"token-file {path}: a deployment started here asks for none")
    try:
        return path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"token-file {path}: {reason}") from None


@contextmanager
def _deployment(choices: Choices, console: Console) -> Iterator[Deployment]:
    given = {name: value for name, value in choices.ingest.items() if value is not None}
    if not choices.gateways:
        if given:
            name, value = next(iter(given.items()))
            raise ValueError(
                f"{name} {value}: is that of a running deployment; "
                "name its gateways with --gateway"
            )
        console.print("starting a deployment, about half a minute", soft_wrap=True)
        with local() as deployment:
            yield deployment
        return
    try:
        settings = IngestSettings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise ValueError(f"{name} {first['input']}: {first['msg']}") from None
    console.print(
        f"loading {', '.join(choices.gateways)} "
        f"and {server_address(settings.redis_url)}",
        soft_wrap=True,
    )
    with attached(choices.gateways, settings) as deployment:
        yield deployment


def _paths(out: Path | None) -> tuple[Path, Path]:
    base = out or Path(time.strftime("load-%Y%m%d-%H%M%S"))
    name = base.name.removesuffix(".json").removesuffix(".html")
    return base.with_name(f"{name}.json"), base.with_name(f"{name}.html")


def _write(result: Result, json_path: Path | None, page_path: Path) -> None:
    try:
        page_path.parent.mkdir(parents=True, exist_ok=True)
        write(result, json_path, page_path)
    except OSError as error:
        raise LoadFailed(f"out {page_path}: {error.strerror or error}") from error
