"""The code as it is sent to other machines."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import ingest
import throttle
from throttle.ship import pack_code


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """The code in one file."""
    return pack_code(tmp_path)


def test_a_task_runs_out_of_the_zip_alone(packed: Path, tmp_path: Path) -> None:
    """Nothing that reading takes is missing, and nothing comes from elsewhere."""
    program = (
        f"import sys; sys.path.insert(0, {str(packed)!r})\n"
        "import throttle.source, throttle.reading, throttle.lease\n"
        "ours = [m for n, m in sys.modules.items()"
        " if n.split('.')[0] in ('ingest', 'throttle', 'gateway', 'deploy')]\n"
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
