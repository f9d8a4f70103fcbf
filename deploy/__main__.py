"""``python -m deploy``: the same program as ``tickthrottle``."""

from deploy.cli import main

main()
