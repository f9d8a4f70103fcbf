"""The npm package: packed, installed into an empty folder, run and type-checked."""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from gateway.app import STATIC
from tests.conftest import leave_out, skip_or_fail
from tests.doc_pages import blocks
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import running_gateway
from tests.node import node_command
from tests.paths import ROOT

HERE = Path(__file__).parent
SOURCE = ROOT / "clients" / "js"
TYPESCRIPT = "typescript@5.9.3"


@pytest.fixture(scope="module")
def npm() -> str:
    path = shutil.which("npm")
    if path is None or shutil.which("node") is None:
        skip_or_fail("no node and npm on PATH")
    return str(path)


@pytest.fixture(scope="module")
def tarball(npm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as ``make release`` packs it."""
    folder = tmp_path_factory.mktemp("packed")
    command = [sys.executable, ROOT / "packaging" / "pack_npm.py", folder]
    subprocess.run(command, check=True, timeout=60)
    [path] = folder.glob("*.tgz")
    return path


@pytest.fixture
def project(npm: str, tarball: Path, tmp_path: Path) -> Path:
    """An empty project that has the package and nothing else."""
    (tmp_path / "package.json").write_text('{"type":"module","private":true}')
    command = [npm, "install", "--offline", "--silent", "--no-audit", tarball]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    return tmp_path


def test_the_tarball_holds_the_gateways_file_and_no_other(tarball: Path) -> None:
    """There is one source of the client."""
    with tarfile.open(tarball) as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}
        for name in ("tick.js", "tick-chain.js"):
            code = packed.extractfile(f"package/{name}")
            assert code is not None
            assert code.read() == (STATIC / name).read_bytes()
    modules = {"tick.js", "tick-chain.js", "tick.d.ts"}
    assert names == {"LICENSE", "README.md", "package.json", *modules}


def test_the_document_says_how_large_it_is() -> None:
    """As a browser loads it, in thousands of bytes."""
    code = (STATIC / "tick.js").read_bytes()
    page = (ROOT / "docs" / "clients.md").read_text("utf-8")
    whole, small = (round(len(one) / 1_000) for one in (code, gzip.compress(code)))
    assert f"one module of {whole} kB, {small} kB compressed" in page


def test_its_version_is_the_products() -> None:
    """A client and a gateway of one release have one number."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    package = json.loads((SOURCE / "package.json").read_text("utf-8"))
    assert package["version"] == about["project"]["version"]


def test_the_types_name_what_the_module_exports_and_offers() -> None:
    """Neither an export nor a public member is without a type."""
    code = (STATIC / "tick.js").read_text("utf-8")
    types = (SOURCE / "tick.d.ts").read_text("utf-8")
    exports = re.compile(r"^export (?:function|class) (\w+)", re.M)
    assert set(exports.findall(code)) == set(exports.findall(types))
    members = set(re.findall(r"^    this\.([a-z]\w*) =", code, re.M))
    members |= set(re.findall(r"^  (?:get )?([a-z]\w*)\(.*\) \{$", code, re.M))
    [body] = re.findall(r"class TickClient \{(.*?)^\}", types, re.M | re.S)
    typed = re.findall(r"^  (?:readonly )?(\w+)[(:<]", body, re.M)
    assert {name for name in members if name != "switch"} == set(typed)


@pytest.mark.redis
def test_the_installed_package_follows_a_gateway(
    project: Path, publisher: Publisher, redis_url: str
) -> None:
    """Under Node, and no digit of a price is lost."""
    shutil.copy(HERE / "follow.mjs", project)
    publisher.publish(make_row(SAMSUNG, "71900.50"))
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        url = f"ws://127.0.0.1:{gateway.port}/v1/stream"
        done = subprocess.run(
            [*node_command(), "follow.mjs", url, SAMSUNG],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[:2] == [SAMSUNG, "71900.50"]


@pytest.mark.slow
@pytest.mark.redis
def test_the_types_are_what_the_compiler_takes(
    npm: str, project: Path, publisher: Publisher, redis_url: str
) -> None:
    """Right uses compile under strict rules, wrong ones do not; the example runs."""
    install = [npm, "install", "--silent", "--no-audit", "--save-exact", TYPESCRIPT]
    if subprocess.run(install, cwd=project, timeout=200).returncode:
        leave_out(f"the check of tick.d.ts: npm got no {TYPESCRIPT}")
    shutil.copy(HERE / "uses_types.ts", project)
    names = ["uses_types.ts", "example.ts"]
    for page in ("docs/clients.md", "clients/js/README.md"):
        [script] = blocks(page, "js")
        names.append(f"script{len(names)}.ts")
        (project / names[-1]).write_text(script)
    [example] = blocks("docs/clients.md", "ts")
    publisher.publish(make_row(SAMSUNG, "71900.50"))
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        example = example.replace(":8000", f":{gateway.port}")
        (project / "example.ts").write_text(example)
        options = ["--strict", "--target", "es2022", "--module", "nodenext"]
        compiler = ["node", "node_modules/typescript/bin/tsc", *options]
        compiled = run([*compiler, *names], project)
        assert compiled.returncode == 0, compiled.stdout
        done = run([*node_command(), "example.js"], project)
    assert (done.returncode, done.stdout) == (0, "71900.50\n"), done.stderr


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
