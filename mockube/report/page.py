"""A recording as one HTML file: a summary to read without scripts, the compressed data, and the page that shows them.

A policy in the file allows this one script and this one style sheet, by their hashes, and no request: whatever the names and values
of the cluster are, they run nothing.
"""

import base64
import gzip
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

import orjson

from mockube.apimachinery.tree import Tree
from mockube.explanations.facts import is_component

from .authors import is_component_author
from .bundle import bundle
from .markdown import markdown_of
from .recording import RecordedRun, Recording
from .summary import fitted, summarize
from .thinning import thinned
from .writes import Writes

MIN_BYTES: Final = 3_000_000
"""The largest page of an ordinary run."""
MAX_BYTES: Final = 8_000_000
"""The largest one of a run with `MANY_CHANGES`."""
MANY_CHANGES: Final = 100_000
_ENTRY: Final = "report/page/main.js"
_COMPARISON_ENTRY: Final = "report/page/comparison.js"
_REPLACED: Final = {"ui/api.js": "report/page/recorded.js"}
_STYLES: Final = ("ui/style.css", "report/page/report.css")
_COMPRESSION: Final = 6
"""The level of gzip: the highest takes three times as long for a few percent."""
_ROOM: Final = 10_000
"""For the icon, the policy, and the notes of what is left out."""
_ICON: Final = "ui/icon.svg"
_LICENCES: Final = "The page contains Preact, https://preactjs.com (MIT), and htm, https://github.com/developit/htm (Apache-2.0)."

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:image/svg+xml;base64,{icon}">
<!-- {licences} -->
<style>{style}</style>
</head>
<body><main id="app" class="plain"><pre>{text}</pre></main>
<script type="application/octet-stream" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def page_of(recording: Recording) -> str:
    """Return the page of a recording, of limited size."""
    writes = Writes(recording.changes)
    summary = summarize(recording, writes=writes)
    frame = _Frame(
        entry=_ENTRY,
        title=summary.get("title", "A cluster of mockube"),
        text=fitted(recording, markdown_of, writes=writes),
    )
    _, packed = _fitted_data(recording, summary, max_bytes(len(recording.changes)) - frame.size)
    return frame.page(packed)


def comparison_page(title: str, text: str, recorded: Mapping[str, RecordedRun]) -> str:
    """Return the page that compares several runs, by their names, of limited size."""
    frame = _Frame(entry=_COMPARISON_ENTRY, title=title, text=text)
    data_bytes = max_bytes(sum(len(run.recording.changes) for run in recorded.values())) - frame.size
    runs: list[Tree] = []
    for name, run in recorded.items():
        data, _ = _fitted_data(run.recording, summarize(run.recording), data_bytes // len(recorded))
        runs.append({"name": name, "revisions": run.revisions, **data})
    return frame.page(_packed({"text": text, "runs": runs}))


def _fitted_data(recording: Recording, summary: Tree, size: int) -> tuple[Tree, str]:
    """Return what the page shows of a recording, with notes of what is left out so that it is not larger, and the same packed."""
    packed = ""

    def size_of(some: Tree) -> int:
        nonlocal packed
        packed = _packed(some)
        return len(packed)

    data, notes = thinned(data_of(recording, summary), size_of, size)
    if notes:
        data = {**data, "summary": {**data["summary"], "notes": [*summary.get("notes", ()), *notes]}}
        packed = _packed(data)
    return data, packed


class _Frame:
    """A page without its data. `text` is what it shows where scripts do not run."""

    def __init__(self, *, entry: str, title: str, text: str) -> None:
        self._script = _safe(bundle(_read, entry, _REPLACED))
        self._style = "".join(map(_read, _STYLES))
        self._title, self._text = escape(title), escape(text)
        parts = (self._script, self._style, self._title, self._text, _PAGE)
        self.size = sum(len(part.encode()) for part in parts) + _ROOM
        """The bytes of the page, but for its data."""

    def page(self, data: str) -> str:
        return _PAGE.format(
            policy=_policy(self._script, self._style),
            title=self._title,
            icon=base64.b64encode(_read(_ICON).encode()).decode(),
            licences=_LICENCES,
            style=self._style,
            text=self._text,
            data=data,
            script=self._script,
        )


def max_bytes(changes: int) -> int:
    """Return how large a page with a number of changes is at most."""
    share = min(1.0, changes / MANY_CHANGES)
    return int(MIN_BYTES + (MAX_BYTES - MIN_BYTES) * share)


def data_of(recording: Recording, summary: Tree) -> Tree:
    """Return what the page shows."""
    authors = [
        {**author, "isComponent": is_component_author(author["user"])}
        for author in summary.get("authors", ())
    ]
    return {
        "summary": {**summary, "authors": authors},
        "revision": recording.revision,
        "discovery": recording.discovery,
        "objects": recording.objects,
        "refused": recording.refused,
        "events": recording.events,
        "changes": recording.changes,
        "requests": recording.requests,
        "components": sorted(
            filter(is_component, {each["spec"].get("user", "") for each in recording.requests})
        ),
        "marks": recording.marks,
        "faults": recording.faults,
        "logs": [
            {
                "namespace": log.namespace,
                "pod": log.pod,
                "container": log.container,
                "previous": log.is_previous,
                "lines": log.lines,
                "problem": log.problem,
            }
            for log in recording.logs
        ],
        "explanations": recording.explanations,
        "similar": [
            {"name": identity.name, "others": [other._asdict() for other in others]}
            for identity, others in recording.similar.items()
        ],
    }


def _packed(data: Tree) -> str:
    return base64.b64encode(gzip.compress(orjson.dumps(data), _COMPRESSION, mtime=0)).decode()


def _policy(script: str, style: str) -> str:
    hashes = [base64.b64encode(sha256(text.encode()).digest()).decode() for text in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _safe(script: str) -> str:
    """Check that nothing in a script of ours ends its element."""
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a script of the page contains the end of its element, or a comment")
    return script


def _read(path: str) -> str:
    return (files("mockube") / path).read_text(encoding="utf-8").replace("\r", "")
