"""What people look at: one HTML file that opens offline, and Markdown for a pull request.

A report is made of entries, one a golden file: how it compares, its curves on both sides, where it comes from.
:func:`build` reads both sides of a comparison; :func:`html` and :func:`markdown` draw the same report.
"""

from __future__ import annotations

from goldenctl.report.build import Compared, build
from goldenctl.report.model import Entry, Fact, Metric, Report
from goldenctl.report.page import html
from goldenctl.report.pull_request import markdown

__all__ = ["Compared", "Entry", "Fact", "Metric", "Report", "build", "html", "markdown"]
