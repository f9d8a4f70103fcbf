"""The program: ``tickthrottle``, ``python -m tickthrottle``, or for ``spark-submit``.

Our packages have names that others use too. A module of such a name on PYTHONPATH
would be imported, and run, in place of ours; another Spark there, or another version of
a library, in place of the one that is installed: the program looks first, and refuses.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

# With it, spark-submit has started the program, on a PySpark of its own.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"


def find_hiding_module() -> str | None:
    """Return what would be imported in place of a package of ours; or None."""
    hiding = _hiding("ingest")
    if hiding is not None:
        return hiding
    # This one is ours, and knows the others.
    from ingest.process.packages import PACKAGES

    return next(filter(None, map(_hiding, PACKAGES)), None)


def find_hiding_library() -> str | None:
    """Return what PYTHONPATH puts in place of an installed library; or None."""
    from ingest.process.packages import LIBRARIES

    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # Python itself makes them absolute.
    folders = [os.path.abspath(folder) for folder in folders if folder]
    installed = [path for path in sys.path if path not in folders]
    if len(installed) == len(sys.path):
        return None
    of_spark = ("py4j", "pyspark") if _SUBMITTED in os.environ else ()
    for name in LIBRARIES:
        used = PathFinder.find_spec(name)
        own = PathFinder.find_spec(name, installed)
        if used is None or own is None or name in of_spark:
            continue
        if used.origin != own.origin:
            return used.origin
    return None


def _hiding(package: str) -> str | None:
    home = Path(__file__).parent
    spec = find_spec(package)
    if spec is None or spec.origin == str(home / package / "__init__.py"):
        return None
    return spec.origin


def main() -> None:
    """Run the program. Where a package of ours is hidden, say by what, and end."""
    hiding = find_hiding_module()
    if hiding is not None:
        sys.stderr.write(
            f"tickthrottle: {hiding} hides a package of tickthrottle: rename it, or "
            "take its folder off PYTHONPATH\n"
        )
        # As everything that cannot be done: docs/running.md.
        sys.exit(3)
    hiding = find_hiding_library()
    if hiding is not None:
        sys.stderr.write(
            f"tickthrottle: {hiding} hides the one that is installed with "
            "tickthrottle: take its folder off PYTHONPATH\n"
        )
        sys.exit(3)
    from cli.command_line import main as run_command

    run_command()


if __name__ == "__main__":
    main()
