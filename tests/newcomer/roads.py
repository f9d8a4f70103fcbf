"""What a newcomer does who has the documents alone: each command, each file of a page.

Only ports differ from what the pages say: those of the gateway and of the page's own
server are free ones.
"""

import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import eventually
from tests.doc_pages import blocks_in, section_of
from tests.e2e.processes import Running, running_command
from tests.ports import free_port

OWN_PAGE = "docs/own-page.md"
FRAMEWORKS = ("React", "Vue")
LONGEST_S = 240
"""A command of a page may take this long."""

_FILE = re.compile(r"^(?://|<!--|#) (src/\S+|\w+\.\w+)")


@dataclass
class Newcomer:
    """Follows pages in a folder of his own, beside a gateway; counts his steps."""

    folder: Path
    gateway_port: int
    port: int = field(default_factory=free_port)
    steps: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """The address of the page that he makes."""
        return f"http://localhost:{self.port}"

    def type_in(self, command: str) -> None:
        """Run a command of a page to its end."""
        self.steps.append(command)
        if command.startswith("cd "):
            self.folder = self.folder / command.split()[1]
            return
        done = subprocess.run(
            shlex.split(self._at_hand(command)),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def save(self, text: str, name: str | None = None) -> None:
        """Save a block of a page to the file that its first line names."""
        if name is None:
            match = _FILE.match(text)
            assert match is not None, text[:80]
            name = match[1]
        self.steps.append(f"save {name}")
        (self.folder / name).write_text(self._at_hand(text), "utf-8")

    @contextmanager
    def serving(self, command: str) -> Iterator[str]:
        """Leave a command running; yield the address of the page that it serves."""
        self.steps.append(command)
        own = re.sub(r"\b5500\b", str(self.port), command)
        if own == command:
            own += f" -- --port {self.port} --strictPort"
        words = shlex.split(own)
        with running_command(self.folder, "server", words, self.folder) as server:
            eventually(lambda: self._is_served(server), 60)
            self.steps.append("open the page")
            yield self.origin

    def _is_served(self, server: Running) -> bool:
        assert server.process.poll() is None, server.log()
        try:
            socket.create_connection(("localhost", self.port), 1).close()
        except OSError:
            return False
        return True

    def _at_hand(self, text: str) -> str:
        return text.replace("127.0.0.1:8000", f"127.0.0.1:{self.gateway_port}")


@contextmanager
def plain_page(newcomer: Newcomer) -> Iterator[str]:
    """Make the plain page; yield its address."""
    section = section_of(OWN_PAGE, "A plain page")
    [html] = blocks_in(section, "html")
    newcomer.save(html, "index.html")
    [command] = blocks_in(section, "sh")
    with newcomer.serving(command.strip()) as address:
        yield address


@contextmanager
def framework_page(newcomer: Newcomer, framework: str) -> Iterator[str]:
    """Make the page of React or Vue; yield its address. Raises AssertionError."""
    section = section_of(OWN_PAGE, framework)
    *first, last = "".join(blocks_in(section, "sh")).splitlines()
    for command in first:
        newcomer.type_in(command)
    for text in blocks_in(section, "js", "jsx", "vue"):
        newcomer.save(text)
    with newcomer.serving(last) as address:
        yield address
