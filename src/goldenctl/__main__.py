"""``python -m goldenctl``."""

from goldenctl.cli.entry import entry

entry()
