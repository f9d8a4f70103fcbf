"""What a newcomer does who has the documents alone: each command, each file of a page.

Only ports differ from what the pages say: those of the gateway and of the page's own
server are free ones. The gateway lists what the page has it list.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import eventually
from tests.doc_pages import blocks_in, commands, section_of
from tests.e2e.processes import running_command
from tests.ports import free_port

OWN_PAGE = "docs/own-page.md"
FRAMEWORKS = ("React", "Vue")
LONGEST_S = 240
"""A command of a page may take this long."""

_FILE = re.compile(r"^(?://|<!--|#) (src/\S+|\w+\.\w+)")
_PORT = re.compile(r"\b(8000|5500|5173)\b")
_ADDRESS = re.compile(r"http://[^\s/]+:\d+")


@dataclass
class Newcomer:
    """Follows pages in a folder of his own, beside a gateway; counts his steps."""

    folder: Path
    gateway_port: int
    port: int = field(default_factory=free_port)
    vite_port: int = field(default_factory=free_port)
    steps: list[str] = field(default_factory=list)

    @property
    def origins(self) -> str:
        """What he has the gateway list."""
        [command] = commands(OWN_PAGE, "TICKTHROTTLE_ALLOWED_ORIGINS=")
        return self._at_hand(command.split()[0].partition("=")[2])

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
        """Save a block of a page to the file that its first line names, whole.

        A server that watches the folder could read a file while it is still empty, and
        keep that. So the text comes by a rename.
        """
        if name is None:
            match = _FILE.match(text)
            assert match is not None, text[:80]
            name = match[1]
        self.steps.append(f"save {name}")
        unseen = self.folder.parent / f"{self.folder.name}.saving"
        unseen.write_text(self._at_hand(text), "utf-8")
        unseen.replace(self.folder / name)

    @contextmanager
    def serving(self, command: str) -> Iterator[str]:
        """Leave a command running; yield the address that it prints."""
        self.steps.append(command)
        own = self._at_hand(command)
        if own == command:
            own += f" -- --port {self.vite_port} --strictPort"
        words, plain = shlex.split(own), {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
        with running_command(
            self.folder, "server", words, self.folder, **plain
        ) as server:
            server.wait_for("http://")
            found = eventually(lambda: _ADDRESS.search(server.log()))
            self.steps.append("open the page")
            yield found[0]

    def _at_hand(self, text: str) -> str:
        ports = {"8000": self.gateway_port, "5500": self.port, "5173": self.vite_port}
        return _PORT.sub(lambda found: str(ports[found[0]]), text)


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
