"""``spark-submit ... submit.py throttle``: the same program as ``tickthrottle``."""

import sys

# A script's own folder comes first, where names of ours hide the library's.
del sys.path[0]

from deploy.cli import main  # noqa: E402 - only now it finds the right ones

main()
