"""Build the documents as a site: build.py FOLDER. Any broken link is an error."""

import os
import re
import shutil
import subprocess
import sys
from os.path import relpath
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from reference import rest_page, stream_page

from gateway.app import create_operators_app, create_public_app
from gateway.backend import Backend
from gateway.operators.firehose.firehose_routes import create_firehose
from gateway.settings import GatewaySettings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "THIRD-PARTY-NOTICES.md": "notices.md",
    "bench/README.md": "bench.md",
    "clients/python/README.md": "python-client.md",
    "clients/js/README.md": "js-client.md",
}
"""Pages that are not in docs/, and their names on the site."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def stage(pages: Path) -> None:
    """Copy all pages, with links that fit the site; what is not on it is no link."""
    shutil.copytree(ROOT / "docs", pages, dirs_exist_ok=True)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        place = path.relative_to(ROOT / "docs")
        (pages / place).write_text(_with_links(path, place), "utf-8")
    for name, page in ELSEWHERE.items():
        (pages / page).write_text(_with_links(ROOT / name, Path(page)), "utf-8")


def _with_links(path: Path, place: Path) -> str:
    def linked(match: re.Match[str]) -> str:
        bang, words, link = match.groups()
        name, mark, anchor = link.partition("#")
        if not name or "://" in link:
            return match[0]
        target = (path.parent / name).resolve().relative_to(ROOT)
        page = ELSEWHERE.get(target.as_posix())
        if target.is_relative_to("docs"):
            page = target.relative_to("docs").as_posix()
        if not page:
            return words
        return f"{bang}[{words}]({relpath(page, place.parent)}{mark}{anchor})"

    parts = re.split(r"(^```.*?^```)", path.read_text("utf-8"), flags=re.M | re.S)
    return "".join(p if p.startswith("```") else LINK.sub(linked, p) for p in parts)


def write_references(pages: Path) -> None:
    """Write the pages that follow from the code and from docs/asyncapi.yaml."""
    backend = Backend(GatewaySettings(), None, None)
    firehose = create_firehose(backend)
    public = create_public_app(backend, firehose).openapi()
    operators = create_operators_app(backend, firehose).openapi()
    stream = yaml.safe_load((ROOT / "docs" / "asyncapi.yaml").read_text("utf-8"))
    for name, text in {
        "rest-reference.md": rest_page("REST, path by path", public),
        "operators-reference.md": rest_page("REST for operators", operators),
        "stream-reference.md": stream_page(stream),
    }.items():
        (pages / name).write_text(text, "utf-8")


def build(folder: Path) -> None:
    """Write the site into a folder, which is emptied before."""
    with TemporaryDirectory() as staged:
        stage(Path(staged))
        write_references(Path(staged))
        places = {
            "TICKTHROTTLE_SITE_PAGES": staged,
            "TICKTHROTTLE_SITE_FOLDER": str(folder.resolve()),
        }
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        subprocess.run(
            [*command, "--clean", "--config-file", HERE / "mkdocs.yml"],
            check=True,
            env={**os.environ, **places, "NO_MKDOCS_2_WARNING": "1"},
        )


if __name__ == "__main__":
    build(Path(sys.argv[1]))
