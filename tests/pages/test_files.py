"""The pages' files: what is vendored is what its table says; nothing is missing."""

import base64
import hashlib
import json
import re
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from gateway.app import STATIC
from gateway.http.security_headers import HEADERS, IMPORT_MAP_SHA256
from tests.paths import ROOT

VENDOR = STATIC / "vendor"
PAGES = sorted(STATIC.glob("*.html"))
ROW = re.compile(r"^\| [^|]+ \| ([\d.]+) \| (\S+) \| ([0-9a-f]{64}) \| \S+ \|$", re.M)
TABLE = {
    name: (version, sha256)
    for version, name, sha256 in ROW.findall((VENDOR / "README.md").read_text("utf-8"))
}


def import_map(page: Path) -> str:
    """Return the text of a page's one inline script."""
    scripts = re.findall(
        r"<script([^>]*)>(.*?)</script>", page.read_text("utf-8"), re.S
    )
    inline = [(kind, text) for kind, text in scripts if "src=" not in kind]
    assert [kind for kind, _ in inline] == [' type="importmap"']
    return inline[0][1]


def test_the_table_has_every_vendored_file() -> None:
    """Nothing comes in without a line of its own."""
    found = {p.name for p in VENDOR.iterdir() if p.is_file()}
    assert set(TABLE) == found - {"README.md"}


def test_a_vendored_file_is_what_was_published() -> None:
    """Its hash and version hold; it asks for no source map."""
    notices = (ROOT / "THIRD-PARTY-NOTICES.md").read_text("utf-8")
    for name, (version, sha256) in TABLE.items():
        content = (VENDOR / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == sha256, name
        assert b"sourceMappingURL" not in content, name
        assert f"{name.split('.')[0].split('-hooks')[0]} {version}" in notices


def test_the_policy_names_the_hash_of_the_import_map() -> None:
    """A browser runs the one inline script of each page, and no other."""
    for page in PAGES:
        text = import_map(page)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert digest == IMPORT_MAP_SHA256, page.name
        assert f"'sha256-{digest}'" in HEADERS["Content-Security-Policy"]
        for path in json.loads(text)["imports"].values():
            assert (STATIC / path.removeprefix("./static/")).is_file()


def test_a_page_names_only_files_that_are_there() -> None:
    """Every script and style sheet is our own."""
    for page in PAGES:
        for path in re.findall(r'(?:src|href)="([^"]+)"', page.read_text("utf-8")):
            if not path.startswith("data:"):
                assert (STATIC / path.removeprefix("static/")).is_file(), path


def test_the_wheel_has_every_file_of_the_pages() -> None:
    """What is installed is what was tested."""
    builder = WheelBuilder(str(ROOT))
    shipped = {f.distribution_path for f in builder.recurse_included_files()}
    wanted = {p.relative_to(ROOT).as_posix() for p in STATIC.rglob("*") if p.is_file()}
    assert wanted <= shipped
