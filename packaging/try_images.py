"""Try each image of a release, as shut in as it is run: try_images.py [NAME].

NAME is what the images are called before the colon, by default localhost/tickthrottle.
That Spark starts in the image with all, its build has shown: it prepares it.
"""

import subprocess
import sys
from importlib.metadata import version

SHUT_IN = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--network", "none")
NEEDS_MOST = {"gateway": "gateway", "all": "throttle"}
"""Of each image the command that imports the most of what is in it."""


def try_image(image: str, command: str) -> None:
    """Have an image say the version of here, and explain a command."""
    told = _output(image, "--version")
    if version("tickthrottle") not in told:
        raise SystemExit(f"{image}: --version is {told!r}")
    _output(image, command, "--help")


def _output(image: str, *words: str) -> str:
    run = ("podman", "run", "--rm", *SHUT_IN, image, *words)
    return subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "localhost/tickthrottle"
    for target, command in NEEDS_MOST.items():
        try_image(f"{name}:{target}", command)
