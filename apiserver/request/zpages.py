"""Serve /statusz (uptime and versions) and /flagz (flags) as text, or as JSON or YAML on request.

Pages below /debug/ that are not implemented say so.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.status import NotAcceptable
from mockube.apimachinery.tree import Tree
from mockube.apiserver.metrics.requests import Route
from mockube.apiserver.wire.frames import encode_object
from mockube.apiserver.wire.negotiation import Clause, MediaType, parse_accept
from mockube.component_base.clock import Clock
from mockube.component_base.version import version, version_document

from .page import Page, Pages
from .request import ACCEPT, Request
from .response import NOT_CACHED, Parts, Response, json_body, text_response

COMPONENT: Final = "apiserver"
_TEXT: Final = "text/plain"
_MEDIA_TYPES: Final = (MediaType.JSON.value, MediaType.YAML.value, _TEXT)
_NOT_ACCEPTABLE: Final = f"only the following media types are accepted: {', '.join(_MEDIA_TYPES)}"
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_DEPRECATED: Final = "v1alpha1"
_HEAD: Final = """
{component} {name}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
"""
_NOT_LISTED: Final = frozenset(
    {"index.html", "apis", "api", "openid", "openapi", ".well-known", "mockube", "debug"}
)
_PROFILES: Final = (
    "allocs", "block", "cmdline", "goroutine", "heap", "mutex", "profile", "symbol", "threadcreate", "trace",
)  # fmt: skip
_DUMPS: Final = ("dump_priority_levels", "dump_queues", "dump_requests")
_UNIX_DATE: Final = "%a %b %e %H:%M:%S UTC %Y"


def zpages(
    clock: Clock,
    gates: FeatureGates,
    flags: Callable[[], Mapping[str, str]],
    paths: Collection[str],
    started: datetime,
) -> Pages:
    """Return the zpages whose gates are on. `paths` are those of all pages; /statusz lists their first segments."""
    minor = gates.minor
    pages: dict[str, Page] = {}
    if gates.is_on("ComponentFlagz"):
        pages["/flagz"] = _page("Flagz", lambda: {"flags": dict(sorted(flags().items()))}, _flags_text)
    if gates.is_on("ComponentStatusz"):
        pages["/statusz"] = _page(
            "Statusz", lambda: _status(started, clock.now(), minor, paths), _status_text
        )
    return pages


def debug_pages(*, has_flow_control: bool) -> Pages:
    """Return pages that name what is not implemented: Go's profiles, and the queues of priority and fairness."""
    profiles = ("/debug/pprof", *(f"/debug/pprof/{name}" for name in _PROFILES), "/debug/flags/v")
    pages = dict.fromkeys(profiles, _not_implemented("it is specific to Go"))
    if has_flow_control:
        folder, reason = (
            "/debug/api_priority_and_fairness",
            "requests are not limited by priority and fairness",
        )
        pages |= dict.fromkeys([f"{folder}/{name}" for name in _DUMPS], _not_implemented(reason))
    return pages


def _not_implemented(reason: str) -> Page:
    async def page(request: Request) -> Response:
        text = f"{request.path} is not implemented by mockube: {reason}\n"
        return text_response(text, HTTPStatus.NOT_IMPLEMENTED)

    return page


def _page(kind: str, fields: Callable[[], Tree], text: Callable[[Tree], str]) -> Page:
    async def page(request: Request) -> Response:
        request.route = Route(resource=kind.lower())
        accept = request.header(ACCEPT)
        media_type, version, pretty = _negotiate(accept, kind) if accept.strip() else (_TEXT, "", False)
        tree = fields()
        if media_type == _TEXT:
            head = _HEAD.format(component=COMPONENT, name=kind.lower())
            return Response(200, [(head + text(tree)).encode()], "text/plain; charset=utf-8")
        request.route = Route(group=_GROUP, version=version, resource=kind.lower())
        document = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": COMPONENT}} | tree
        body: Parts = [encode_object(document, MediaType(media_type))]
        if media_type == MediaType.JSON:
            body = json_body(body, pretty=pretty or request.wants_pretty)
        deprecated = f"This version of the {kind.lower()} endpoint is deprecated. Please use a newer version."
        headers = {**NOT_CACHED, "Warning": f'299 - "{deprecated}"'} if version == _DEPRECATED else NOT_CACHED
        return Response(200, body, f"{media_type};g={_GROUP};v={version};as={kind}", headers=headers)

    return page


def _negotiate(accept: str, kind: str) -> tuple[str, str, bool]:
    """Return the media type, the version of the kind, and whether to indent JSON."""
    for clause in parse_accept(accept):
        for media_type in _MEDIA_TYPES:
            if clause.covers(media_type) and (version := _version(clause, media_type, kind)) is not None:
                return media_type, version, clause.parameters.get("pretty") == "1"
    raise NotAcceptable(_NOT_ACCEPTABLE)


def _version(clause: Clause, media_type: str, kind: str) -> str | None:
    """Return the requested version, "" for text, or None if there is no such version."""
    if clause.parameters.get("stream") or clause.parameters.get("sv"):
        return None
    if media_type == _TEXT:
        return "" if clause.target is None else None
    group, version, target_kind = clause.target or ("", "", "")
    return version if (group, target_kind) == (_GROUP, kind) and version in _VERSIONS else None


def _status(started: datetime, now: datetime, minor: str, paths: Collection[str]) -> Tree:
    folders = {path.split("/")[1] for path in paths} - _NOT_LISTED - {""}
    return {
        "startTime": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "uptimeSeconds": max(0, int((now - started).total_seconds())),
        "goVersion": version_document()["goVersion"],
        "binaryVersion": version(minor),
        "emulationVersion": minor,
        "paths": [f"/{folder}" for folder in sorted(folders)],
    }


def _status_text(tree: Tree) -> str:
    seconds = tree["uptimeSeconds"]
    uptime = f"{seconds // 3600} hr {seconds // 60 % 60:02} min {seconds % 60:02} sec"
    started = datetime.strptime(tree["startTime"], "%Y-%m-%dT%H:%M:%S%z").strftime(_UNIX_DATE)
    rows = {
        "Started": started,
        "Up": uptime,
        "Go version": tree["goVersion"],
        "Binary version": tree["binaryVersion"],
        "Emulation version": tree["emulationVersion"],
        "Paths": " ".join(tree["paths"]),
    }
    return "\n" + "".join(f"{name}:  {value}\n" for name, value in rows.items())


def _flags_text(tree: Tree) -> str:
    return "".join(f"{name}={value}\n" for name, value in tree["flags"].items())
