"""A guide as a reader follows it: each command in turn, and what it prints."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from tests.conftest import eventually
from tests.doc_pages import text_of
from tests.e2e.processes import running_command

GUIDES = ("csv", "login", "before-the-open", "exchange")
"""In the order of a newcomer: each goes on from what the one before has left."""

TOPIC = "docs/guides/topic.md"
"""Has a pipeline of its own, on a topic."""

LONGEST_S = 180
"""A command may take this long on a busy machine."""

STARTED = "make run"
"""A command that begins so runs already."""

SERVERS = {
    r"[A-Z]\w+=\S+ .*tickthrottle gateway$": "feed loaded",
    r"tickthrottle run ": "page      live",
}
"""Commands that are left running, and what they say when they are ready."""

_BLOCK = re.compile(r"^```(sh|text|python|js)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PORT = re.compile(r"\b(8000|8001|8010|9092)\b")
_OTHER_EACH_TIME = (
    re.compile(r'("epoch":)"\w+"'),
    re.compile(r'("(?:seq|time)":)1[78]\d{14}'),
    re.compile(r'("count":)\d+,"data":\[(?:\{"id".*)?\]'),
    re.compile(r"^(feed .*? ago).*$", re.M),
    re.compile(r"^(All is well since ).*$", re.M),
    re.compile(r'("(?:open|opens|closes|offset|window|instruments)":)\w+'),
)
_LINE_OF_STATUS = re.compile(r"^(?:feed|log|job|stream|gateway|clients) .*$", re.M)


def alike(output: str) -> str:
    """Return an output without what is another one each time: times, lags, counts."""
    for pattern in _OTHER_EACH_TIME:
        output = pattern.sub(r"\g<1>0", output)
    return _LINE_OF_STATUS.sub(
        lambda found: re.sub(r"[\d:.]+", "0", found[0]), output
    ).strip()


def steps(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield language, text and shown output of each block of a page, in their order."""
    blocks = [(found[1], found[2]) for found in _BLOCK.finditer(text_of(page))]
    for (language, text), (following, shown) in zip(
        blocks, [*blocks[1:], ("", "")], strict=True
    ):
        if language != "text":
            yield language, text, shown if following == "text" else ""


def follow(
    page: str,
    folder: Path,
    ports: Mapping[str, int],
    most: int | None = None,
    **environment: str,
) -> None:
    """Do all a page says in a folder, or its first steps; AssertionError if not so.

    An output that comes later, as a price with its window, is asked for again.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **environment, "PATH": path}

    def own(text: str) -> str:
        return _PORT.sub(lambda found: str(ports[found[0]]), text)

    def run(script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", own(script)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{page}: {script}{done.stdout}{done.stderr}"
        return done.stdout

    with ExitStack() as left_running:
        for language, text, shown in islice(steps(page), most):
            ready = [words for form, words in SERVERS.items() if re.match(form, text)]
            if language in ("python", "js"):
                name = re.split(r"^(?:#|//) ", text.partition("\n")[0])[1]
                (folder / name).write_text(own(text))
            elif ready:
                words = ["bash", "-c", f"exec env {own(text)}"]
                server = left_running.enter_context(
                    running_command(folder, "server", words, folder, **environment)
                )
                server.wait_for(ready[0], LONGEST_S)
            elif text.startswith(STARTED):
                continue
            elif not shown:
                run(text)
            else:
                _see(lambda text=text: run(text), shown, page)  # type: ignore[misc]


def _see(run: Callable[[], str], shown: str, page: str) -> None:
    seen = ""

    def is_shown() -> bool:
        nonlocal seen
        try:
            seen = run()
        except AssertionError as error:
            # A busy machine is not well at once.
            seen = str(error)
        return alike(seen) == alike(shown)

    try:
        eventually(is_shown, 60)
    except AssertionError:
        assert alike(seen) == alike(shown), f"{page}: {seen}"
