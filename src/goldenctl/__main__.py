"""``python -m goldenctl``."""

from goldenctl.cli.app import entry

entry()
