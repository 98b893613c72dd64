"""Writes a report of a cluster to a file, in the format that its name has."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import orjson

from mockube.client.kubeconfig import Access
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.failure import UsageError

from .collection import SECONDS, collect
from .markdown import markdown_of
from .page import page_of
from .recording import NO_SUBJECT, Recording, Subject
from .summary import fitted

_MORE: Final = ": `mockube report -o run.html` has more"


def _markdown(recording: Recording) -> str:
    return fitted(recording, markdown_of, more=_MORE)


def _json(recording: Recording) -> str:
    return fitted(
        recording,
        lambda summary: orjson.dumps(summary).decode() + "\n",  # blanks would take the room of causes
        more=_MORE,
    )


WRITERS: Final[Mapping[str, Callable[[Recording], str]]] = {
    ".html": page_of,
    ".md": _markdown,
    ".json": _json,
}
"""How a report is written, by the end of the file's name."""


def check_path(path: Path) -> None:
    """Refuse a name whose end is no format."""
    if path.suffix not in WRITERS:
        raise UsageError(f"{path}: a report is written to a file whose name ends with .html, .md or .json")


async def write_report(
    access: Access,
    path: Path,
    subject: Subject = NO_SUBJECT,
    *,
    ends_faults: bool = False,
    seconds: float = SECONDS,
) -> None:
    """Write a report of the cluster of a server, whose requests take some seconds each at most.

    If `ends_faults`, the faults of the cluster are deleted, which could refuse requests of the report.
    """
    check_path(path)
    async with open_client(access, RealClock()) as client:
        recording = await collect(client.with_timeout(seconds), subject, seconds, ends_faults=ends_faults)
    await asyncio.to_thread(_write, recording, path)


def _write(recording: Recording, path: Path) -> None:
    text = WRITERS[path.suffix](recording)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
