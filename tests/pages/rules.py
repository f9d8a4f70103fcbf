"""Calls the pages' pure modules, in Node."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.app import STATIC
from tests.conftest import skip_or_fail

CALLS = """
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const answers = [];
  for (const [module, name, parameters] of JSON.parse(line)) {
    const rule = (await import(`./static/operations/${module}.js`))[name];
    answers.push((typeof rule === "function" ? rule(...parameters) : rule) ?? null);
  }
  console.log(JSON.stringify(answers));
}
"""


class Rules:
    """The operations view's rules, as a browser would load them, in one Node."""

    def __init__(self, node: "subprocess.Popen[str]") -> None:
        self._node = node

    def call(self, module: str, name: str, *parameters: Any) -> Any:
        """Return what a rule returns, or the value of a constant."""
        [answer] = self.call_all((module, name, *parameters))
        return answer

    def call_all(self, *calls: tuple[Any, ...]) -> list[Any]:
        """The same for several rules at once."""
        asked = [[module, name, list(rest)] for module, name, *rest in calls]
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        print(json.dumps(asked), file=self._node.stdin, flush=True)
        line = self._node.stdout.readline()
        assert line, "Node has ended; what it said is above"
        answers: list[Any] = json.loads(line)
        return answers


@contextmanager
def running_rules(folder: Path) -> Iterator[Rules]:
    """Run the rules until the block ends; skip where there is no Node."""
    node = shutil.which("node")
    if node is None:
        skip_or_fail("no node on PATH")
    shutil.copytree(STATIC, folder / "static")
    # Node takes a .js file for a module of the old kind otherwise.
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "calls.js").write_text(CALLS)
    with subprocess.Popen(
        [str(node), str(folder / "calls.js")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"TZ": "Asia/Seoul", "PATH": ""},
    ) as process:
        try:
            yield Rules(process)
        finally:
            process.kill()
