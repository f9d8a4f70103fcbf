"""Calls the pages' pure modules, in Node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from gateway.app import STATIC
from tests.conftest import skip_or_fail

CALLS = """
import { readFileSync } from "node:fs";
const calls = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const [module, name, parameters] of calls) {
  const rule = (await import(`./static/operations/${module}.js`))[name];
  answers.push((typeof rule === "function" ? rule(...parameters) : rule) ?? null);
}
console.log(JSON.stringify(answers));
"""


class Rules:
    """The operations view's rules, as a browser would load them."""

    def __init__(self, folder: Path) -> None:
        node = shutil.which("node")
        if node is None:
            skip_or_fail("no node on PATH")
        self._command = [str(node), str(folder / "calls.js")]
        shutil.copytree(STATIC, folder / "static")
        # Node takes a .js file for a module of the old kind otherwise.
        (folder / "package.json").write_text('{"type": "module"}')
        (folder / "calls.js").write_text(CALLS)

    def call(self, module: str, name: str, *parameters: Any) -> Any:
        """Return what a rule returns, or the value of a constant."""
        [answer] = self.call_all((module, name, *parameters))
        return answer

    def call_all(self, *calls: tuple[Any, ...]) -> list[Any]:
        """The same for several rules at once."""
        asked = [[module, name, list(rest)] for module, name, *rest in calls]
        done = subprocess.run(
            self._command,
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=30,
            env={"TZ": "Asia/Seoul", "PATH": ""},
        )
        assert done.returncode == 0, done.stderr
        answers: list[Any] = json.loads(done.stdout)
        return answers
