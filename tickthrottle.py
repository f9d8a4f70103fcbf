"""The program: ``tickthrottle``, ``python -m tickthrottle``, or for ``spark-submit``.

Our packages have names that others use too. A module of such a name on PYTHONPATH
would be imported, and run, in place of ours: the program looks first, and refuses.
"""

import sys
from importlib.util import find_spec
from pathlib import Path


def find_hiding_module() -> str | None:
    """Return what would be imported in place of a package of ours; or None."""
    hiding = _hiding("ingest")
    if hiding is not None:
        return hiding
    # This one is ours, and knows the others.
    from ingest.process.packages import PACKAGES

    return next(filter(None, map(_hiding, PACKAGES)), None)


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
    from deploy.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
