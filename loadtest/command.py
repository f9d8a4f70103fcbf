"""`tickthrottle load`, from its options to its report and its verdict."""

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import redis
from rich.console import Console

from cli.commands.load_choices import LoadChoices
from cli.local.pipelines import join_pipeline
from ingest.process.redact import server_address
from ingest.settings import IngestSettings
from ingest.sources.tape import TapeError
from loadtest.clients.crowd import CrowdLost
from loadtest.feed.feeding import FeedFailed
from loadtest.judge.following import NoStream
from loadtest.load_run import EndedTooSoon, carry_out
from loadtest.plan import LoadPlan, plan_of
from loadtest.report.console import RunDisplay
from loadtest.report.page import render
from loadtest.report.terminal import summary
from loadtest.results import Result, encode
from loadtest.system.deployment import (
    Deployment,
    DeploymentError,
    attached,
    local,
)


class LoadFailed(RuntimeError):
    """The load test could not be carried out; the message says why."""


def run_command(choices: LoadChoices) -> bool:
    """Carry out what was asked for, leave the report, say whether it held.

    Raises ValueError for options that make no sense, and LoadFailed.
    """
    command = shlex.join(["tickthrottle", *sys.argv[1:]])
    plan = replace(plan_of(choices, command), token=_token(choices))
    console = Console(stderr=True, highlight=False)
    try:
        # What cannot be fed or asked for is told before anything is started.
        instruments = plan.feed.isins()
        plan.audience.members(instruments)
        with (
            _deployment(choices, plan, console) as deployment,
            RunDisplay(console) as progress,
        ):
            result = carry_out(plan, instruments, deployment, progress)
    except (CrowdLost, DeploymentError, FeedFailed, NoStream, TapeError) as error:
        raise LoadFailed(str(error)) from error
    except EndedTooSoon:
        raise LoadFailed("ended before anything was measured") from None
    except redis.RedisError as error:
        raise LoadFailed(f"redis_url: {error}") from error
    where = _write(result, choices.out)
    console.print(summary(result))
    console.print(f"Report: {where}", soft_wrap=True)
    return result.is_passed


def _token(choices: LoadChoices) -> str | None:
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
def _deployment(
    choices: LoadChoices, plan: LoadPlan, console: Console
) -> Iterator[Deployment]:
    if not choices.gateways:
        console.print("starting a deployment, about twenty seconds", soft_wrap=True)
        with local(**plan.deployment) as deployment:
            yield deployment
        return
    pages = {f"{url.rstrip('/')}/" for url in choices.gateways}
    settings, _ = join_pipeline(IngestSettings, {}, pages)
    console.print(
        f"loading {', '.join(choices.gateways)} "
        f"and {server_address(settings.redis_url)}",
        soft_wrap=True,
    )
    with attached(choices.gateways, settings) as deployment:
        yield deployment


def _write(result: Result, out: Path | None) -> str:
    """Leave the report as JSON and as a page; return where."""
    base = out or Path(time.strftime("load-%Y%m%d-%H%M%S"))
    name = base.name.removesuffix(".json").removesuffix(".html")
    json_path, page_path = (base.with_name(f"{name}.{end}") for end in ("json", "html"))
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_bytes(encode(result))
        page_path.write_text(render(result), "utf-8")
    except OSError as error:
        raise LoadFailed(f"out {page_path}: {error.strerror or error}") from error
    return f"{page_path} and {json_path}"
