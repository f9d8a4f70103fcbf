"""The code as it is sent to other machines."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import ingest
import throttle
from tests.documents import OPERATIONS
from throttle.spark.session import PACKAGES, pack_code

# Where a module has another name than what is installed.
PACKAGE_OF = {"stdnum": "python-stdnum", "confluent_kafka": "confluent-kafka"}


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """The code in one file."""
    return pack_code(tmp_path)


def test_a_task_runs_out_of_the_zip_alone(packed: Path, tmp_path: Path) -> None:
    """Nothing that reading takes is missing, and nothing comes from elsewhere."""
    program = (
        f"import sys; sys.path.insert(0, {str(packed)!r})\n"
        "import throttle.spark.source, throttle.spark.reader, throttle.lease.lease\n"
        "ours = [m for n, m in sys.modules.items()"
        " if n.split('.')[0] in ('ingest', 'throttle', 'gateway', 'cli')]\n"
        f"assert all(m.__file__.startswith({str(packed)!r}) for m in ours), ours\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_module_is_in_the_zip(packed: Path) -> None:
    """Whatever a task comes to need later is there too."""
    names = set(ZipFile(packed).namelist())
    for package in (ingest, throttle):
        folder = Path(str(package.__file__)).parent
        wanted = {str(file.relative_to(folder.parent)) for file in folder.rglob("*.py")}
        assert names >= wanted


def test_what_a_task_imports_of_others_is_in_the_document(packed: Path) -> None:
    """Whoever sets up a worker learns what has to be installed on it."""
    [needed] = re.findall(r"packages that this code imports (.*)", OPERATIONS)
    program = (
        "import sys, throttle.spark.source, throttle.spark.reader\n"
        "print(*(m.__file__ for n, m in sys.modules.items()"
        " if n.split('.')[0] in ('ingest', 'throttle') and m.__file__))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    found = set()
    for file in done.stdout.split():
        for node in ast.walk(ast.parse(Path(file).read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(str(node.module).partition(".")[0])
    others = found - sys.stdlib_module_names - {*PACKAGES, "pyspark"}
    assert others >= {"redis", "orjson", "pyarrow"}
    for module in others:
        assert f"`{PACKAGE_OF.get(module, module)}`" in needed
