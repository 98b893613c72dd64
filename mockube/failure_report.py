"""The report about the cluster of a failed test: its last requests, events of what is not healthy, warnings and errors; and a file."""

import asyncio
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from mockube.apimachinery import meta
from mockube.client.kubeconfig import read
from mockube.cluster import Cluster, ForkedCluster
from mockube.component_base.printable import printable
from mockube.embedded.calls import CallsDropped
from mockube.objects import health
from mockube.objects.errors import WaitFailed
from mockube.objects.wait_report import format_event
from mockube.report.recording import Subject
from mockube.report.writing import write_report

MAX_LINES: Final = 20
"""The number of last lines of each section."""

REQUEST_SECONDS: Final = 60.0
"""How long a request for the report of a failed test may take."""
_MAX_NAME: Final = 150
_SEPARATORS: Final = re.compile(r"::|/")
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9_.-]+")

AnyCluster: TypeAlias = Cluster | ForkedCluster
LinesOf: TypeAlias = Callable[[AnyCluster], Iterable[str]]


def failure_sections(
    cluster: AnyCluster,
    error: BaseException | None = None,
    name: str = "mockube",
    write_page: LinesOf | None = None,
) -> Sequence[tuple[str, str]]:
    """Return titles and texts of the sections that are not empty; `name` is that of the fixture.

    The error of a failed wait contains the events already. Injected faults are stopped before events are listed, because
    they could block that request.
    """
    calls, *others = _SECTIONS
    page = [] if write_page is None else [("report", write_page)]
    sections = [
        (title, _section_text(lines_of, cluster))
        for title, lines_of in (calls, *page, *others)
        if not (lines_of is _events and isinstance(error, WaitFailed))
    ]
    return [(f"{name}: {title}", text) for title, text in sections if text]


def page_writer(path: Path, subject: Subject) -> LinesOf:
    """Return what writes a page about a cluster, and returns its path. Faults are deleted."""

    def write_page(cluster: AnyCluster) -> Iterable[str]:
        work = partial(
            write_report,
            read(cluster.kubeconfig),
            path,
            subject,
            ends_faults=True,
            seconds=REQUEST_SECONDS,
        )
        with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
            thread.submit(lambda: asyncio.run(work())).result()
        return [str(path)]

    return write_page


def file_name(test: str, part: str) -> str:
    """Return the name of the file of a test: its id, with a digest if that has characters that a file's name has not."""
    name = _SEPARATORS.sub("-", test)
    usual = _UNUSUAL.sub("-", name)[:_MAX_NAME]
    digest = "" if usual == name else f"-{sha256(test.encode()).hexdigest()[:8]}"
    return f"{usual}{digest}{part}.html"


def _section_text(lines_of: LinesOf, cluster: AnyCluster) -> str:
    try:
        lines = [*lines_of(cluster)]
    except Exception as error:  # noqa: BLE001 - the report of the failed test must not fail
        return str(error)
    omitted = [f"... and {len(lines) - MAX_LINES} before"] if len(lines) > MAX_LINES else []
    return "\n".join((*omitted, *map(printable, lines[-MAX_LINES:])))


def _calls(cluster: AnyCluster) -> Iterable[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CallsDropped)
        return map(str, cluster.calls())


def _events(cluster: AnyCluster) -> Iterable[str]:
    """Return the events as lines: warnings, and the events of what is neither a healthy node nor a healthy pod."""
    cluster.stop_faults()
    healthy_objects = {
        (kind, meta.name(tree))
        for kind in ("Node", "Pod")
        for tree in cluster.list(kind, namespace="")
        if health.is_healthy(tree)
    }
    events = sorted(cluster.list("Event", namespace=""), key=lambda event: int(meta.resource_version(event)))
    for event in events:
        regarding = event.get("involvedObject") or {}
        subject = (regarding.get("kind"), regarding.get("name"))
        if event.get("type") == "Warning" or subject not in healthy_objects:
            yield format_event(event)


def _log_lines(cluster: AnyCluster) -> Iterable[str]:
    return cluster.complaints


_SECTIONS: Final[Sequence[tuple[str, LinesOf]]] = (
    ("calls", _calls),  # first, because the other sections send requests
    ("events", _events),
    ("warnings and errors", _log_lines),
)
