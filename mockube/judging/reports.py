"""The reports by the names of their formats. The table for a terminal is in `text_report`."""

from collections.abc import Callable, Mapping
from typing import Final

from .findings import OperatorReport
from .machine_reports import json_report, junit_report, sarif_report
from .page_reports import html_report, markdown_report

REPORTS: Final[Mapping[str, Callable[[OperatorReport, str], str]]] = {
    "json": json_report,
    "junit": junit_report,
    "sarif": sarif_report,
    "markdown": markdown_report,
    "html": html_report,
}
