"""`/logs/`: the files below /var/log of a simulated node, and the queries of its journal (NodeLogQuery)."""

import html
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from aiohttp import web
from multidict import MultiMapping

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.gotext import quote as go_quote
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import check as check_pattern
from mockube.apimachinery.regexp.perl import PerlPatternError
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.node_journal import JournalEntry, JournalQuery, grep_pattern, line_of, select
from mockube.container_runtime.node_machine import NodeMachines, ServiceFailed

from .http_errors import HttpError

if TYPE_CHECKING:
    from mockube.kubelet.node_machine.services import MachineServices

FOLDER: Final = "/var/log"
LOGS: Final = "/logs"
MAX_TAIL: Final = 100_000
MAX_SERVICES: Final = 4
_MAX_NAME: Final = 256
_UNSAFE: Final = re.compile(r"[^a-zA-Z\-_.:0-9@]+")
_CANDIDATES: Final = ("{0}", "{0}.log", "{0}/{0}.log")
_OPTIONS: Final = ("sinceTime", "untilTime", "tailLines", "boot", "pattern")
_TEXT: Final = {"Content-Type": "text/plain;charset=UTF-8"}


class NodeLogs:
    def __init__(self, machines: NodeMachines, services: "MachineServices") -> None:
        self._machines = machines
        self._services = services

    async def respond(self, request: web.BaseRequest, node: ReadOnlyTree) -> web.StreamResponse:
        await self._machines.refresh(meta.name(node))
        query = _read_query(request.query)
        if query is not None and query.errors:
            raise HttpError(400, f"{_aggregate(query.errors)}\n")
        if query is None:
            return await self._file(meta.name(node), request.path)
        if request.path != f"{LOGS}/":
            raise HttpError(406, "path not allowed in query mode\n")
        if errors := self._validate(query, meta.name(node)):
            raise HttpError(406, f"{_aggregate(errors)}\n")
        if query.files:
            return await self._file(meta.name(node), f"{LOGS}/{query.files[0].lstrip('/')}")
        return await self._answer(query, node)

    # --- files

    async def _file(self, node: str, requested: str) -> web.StreamResponse:
        path = _clean(requested[len(LOGS) :])
        file = None if path is None or requested == LOGS else self._machines.find(node, path)
        if path is None or file is None:
            raise HttpError(404, "404 page not found\n")
        name = path.rpartition("/")[2]
        if file.is_directory:
            if not requested.endswith("/"):
                return web.Response(status=301, headers={"Location": f"{name}/"})
            return web.Response(text=self._listing(node, path), content_type="text/html")
        if requested.endswith("/"):
            return web.Response(status=301, headers={"Location": f"../{name}"})
        data = await self._content(node, path)
        return web.Response(body=data, headers={"Content-Type": "text/plain; charset=utf-8"})

    def _listing(self, node: str, path: str) -> str:
        """Return the names in a folder as Go's file server lists them."""
        lines = ["<!doctype html>", '<meta name="viewport" content="width=device-width">', "<pre>"]
        for name in self._machines.children(node, path):
            file = self._machines.find(node, f"{path}/{name}")
            label = f"{name}/" if file is not None and file.is_directory else name
            lines.append(f'<a href="{quote(label)}">{html.escape(label)}</a>')
        return "\n".join([*lines, "</pre>", ""])

    async def _content(self, node: str, path: str) -> bytes:
        """Return the content of a file; the logs of containers are those of now."""
        texts = await self._services.answer(node, "logs", {"paths": [self._machines.resolve(node, path)]})
        for text in texts.values():
            return str(text).encode("utf-8", "surrogateescape")
        file = self._machines.find(node, path)
        return b"" if file is None else file.data

    # --- queries

    async def _answer(self, query: "LogQuery", node: ReadOnlyTree) -> web.Response:
        name = meta.name(node)
        entries = await self._journal(node)
        units = {entry.unit for entry in entries}
        native = [service for service in query.services if f"{service}.service" in units]
        text = self._journal_text(query, native, entries, name) if native else ""
        others = [service for service in query.services if service not in native]
        if others and query.has_options:
            listed = "[" + " ".join(others) + "]"
            text += f"\noptions present and query resolved to log files for {listed}\ntry without specifying options\n"
            return web.Response(text=text, headers=_TEXT)
        data = text.encode()
        for service in others:
            data += await self._heuristic(name, service)
        return web.Response(body=data, headers=_TEXT)

    async def _journal(self, node: ReadOnlyTree) -> list[JournalEntry]:
        try:
            return await self._services.journal(node)
        except ServiceFailed as error:
            raise HttpError(500, str(error)) from error

    def _journal_text(
        self, query: "LogQuery", units: Sequence[str], entries: list[JournalEntry], node: str
    ) -> str:
        found: list[JournalEntry] = []
        if not query.boot:
            selection = JournalQuery(
                units=units, since=query.since, until=query.until, lines=query.tail, grep=query.pattern
            )
            found = select(entries, selection)
        if not found:
            return "-- No entries --\n"
        return "".join(f"{line_of(entry, node, 'short-precise')}\n" for entry in found)

    async def _heuristic(self, node: str, service: str) -> bytes:
        """Return the log file of a service that does not write to the journal."""
        for candidate in _CANDIDATES:
            path = _clean(candidate.format(service))
            file = None if path is None else self._machines.find(node, path)
            if path is not None and file is not None and not file.is_directory:
                return await self._content(node, path)
        return f"\nlog not found for {service}\n".encode()

    def _validate(self, query: "LogQuery", node: str) -> list[str]:
        errors = [*_service_errors(query.services)]
        files, services = query.files, query.services
        if not files and not services:
            errors.append("query: Required value: cannot be empty with options")
        elif files and services:
            values = f"[{' '.join(files)}], [{' '.join(services)}]"
            errors.append(f"query: Invalid value: {go_quote(values)}: cannot specify a file and service")
        elif len(files) > 1:
            errors.append(f"query: Invalid value: {_array(files)}: cannot specify more than one file")
        elif files and query.has_options:
            errors.append(f"query: Invalid value: {_array(files)}: cannot specify file with options")
        elif files and (reason := self._file_problem(node, files[0])):
            errors.append(f"query: Invalid value: {_array(files)}: statat {files[0]}: {reason}")
        if query.since and query.until and query.since > query.until:
            errors.append(
                f"untilTime: Invalid value: {go_quote(query.until_text)}: must be after `sinceTime`"
            )
        if query.boot is not None and query.boot > 0:
            errors.append(f"boot: Invalid value: {query.boot}: must be less than 1")
        if query.tail is not None and not 0 <= query.tail <= MAX_TAIL:
            errors.append(
                f"tailLines: Invalid value: {query.tail}: must be between 0 and {MAX_TAIL}, inclusive"
            )
        try:
            check_pattern(query.pattern)
            grep_pattern(query.pattern)
        except (RegexpError, PerlPatternError) as error:
            errors.append(f"pattern: Invalid value: {go_quote(query.pattern)}: {error}")
        return errors

    def _file_problem(self, node: str, file: str) -> str:
        """Return why a file below the folder of logs cannot be read; "" if it can."""
        path = _clean(file)
        if path is None:
            return "path escapes from parent"
        return "" if self._machines.find(node, path) is not None else "no such file or directory"


class LogQuery:
    """The query of a request; `errors` are those of its values."""

    def __init__(self, query: MultiMapping[str]) -> None:
        self.errors: list[str] = []
        values = query.getall("query", [])
        self.files = [each for each in values if "/" in each or "\\" in each]
        self.services = [each for each in values if each not in self.files and each.strip()]
        if "query" in query and not self.files and not self.services:
            self.errors.append(f"query: Invalid value: {_array(values)}: may not be empty")
        self.since = self._time(query, "sinceTime")
        self.until_text = query.get("untilTime", "")
        self.until = self._time(query, "untilTime")
        self.boot = self._number(query, "boot")
        self.tail = self._number(query, "tailLines")
        self.pattern = query.get("pattern", "")
        self.has_options = any(query.get(name) for name in _OPTIONS)

    def _time(self, query: Mapping[str, str], name: str) -> datetime | None:
        text = query.get(name, "")
        if not text:
            return None
        try:
            return parse_time(text)
        except ValueError:
            self.errors.append(f"{name}: Invalid value: {go_quote(text)}: invalid time format")
            return None

    def _number(self, query: Mapping[str, str], name: str) -> int | None:
        text = query.get(name, "")
        value = gotext.int_or_none(text) if text else None
        if text and value is None:
            reason = f"strconv.Atoi: parsing {go_quote(text)}: invalid syntax"
            self.errors.append(f"{name}: Invalid value: {go_quote(text)}: {reason}")
        return value


def _read_query(query: MultiMapping[str]) -> LogQuery | None:
    """Return the query of the journal; None for a request for a file."""
    return LogQuery(query) if "query" in query or any(query.get(name) for name in _OPTIONS) else None


def _service_errors(services: Sequence[str]) -> Sequence[str]:
    errors = []
    for service in services:
        if len(service) > _MAX_NAME:
            errors.append(f"query: Invalid value: {go_quote(service)}: length must be less than {_MAX_NAME}")
        elif _UNSAFE.search(service):
            errors.append(f"query: Invalid value: {go_quote(service)}: input contains unsupported characters")
    if len(services) > MAX_SERVICES:
        errors.append(f"query: Too many: {len(services)}: must have at most {MAX_SERVICES} items")
    return errors


def _array(values: Sequence[str]) -> str:
    return "[" + ",".join(map(go_quote, values)) + "]"


def _aggregate(errors: Sequence[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _clean(path: str) -> str | None:
    """Return the path of a log on the node; None if it leads out of the folder."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join([FOLDER, *parts])
