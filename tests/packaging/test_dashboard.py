"""The dashboard is one of Grafana's, as far as Grafana's own types tell.

There is no Grafana to open it in: no registry of packages has its server. That a
Prometheus answers its queries is tested beside the containers.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.js.test_npm_package import TYPESCRIPT
from tests.conftest import leave_out, skip_or_fail
from tests.paths import ROOT

SCHEMA = "@grafana/schema@13.2.3"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"
# A value of an enumeration is its text in the file. What a data source is asked is its
# own; that of Prometheus takes the title of an annotation from a label.
PROGRAM = """\
import type { AnnotationQuery, Dashboard } from "@grafana/schema";
type Plain<T> = T extends string ? `${T}`
  : T extends { refId: string } ? Record<string, unknown>
  : T extends AnnotationQuery ? Fields<T> & { titleFormat: string }
  : T extends object ? Fields<T> : T;
type Fields<T> = { [K in keyof T]: Plain<T[K]> };
const dashboard: Plain<Dashboard> = """


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_dashboard_has_the_fields_that_grafana_knows(tmp_path: Path) -> None:
    """None that it does not know, none that is missing, none of another kind."""
    npm = shutil.which("npm")
    if npm is None:
        skip_or_fail("npm is not installed")
    assert npm is not None
    (tmp_path / "package.json").write_text('{"type":"module"}')
    options = ("--silent", "--no-audit", "--ignore-scripts", "--save-exact")
    install = [npm, "install", *options, SCHEMA, TYPESCRIPT]
    if subprocess.run(install, cwd=tmp_path, timeout=200).returncode:
        leave_out(f"the check of the dashboard's fields: npm got no {SCHEMA}")
    compiler = ["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict"]
    compiler += ["--skipLibCheck", "--module", "esnext", "--target", "es2022"]
    compiler += ["--moduleResolution", "bundler"]

    def said_of(text: str) -> str:
        (tmp_path / "dashboard.ts").write_text(f"{PROGRAM}{text}", "utf-8")
        done = subprocess.run(
            [*compiler, "dashboard.ts"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    text = DASHBOARD.read_text("utf-8")
    assert said_of(text) == ""
    assert "gridPoz" in said_of(text.replace('"gridPos"', '"gridPoz"', 1))
