"""Content negotiation: Accept and Content-Type, parsed as upstream parses them."""

import re
from collections.abc import Collection, Mapping
from enum import Enum, StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct, field


class MediaType(StrEnum):
    JSON = "application/json"
    YAML = "application/yaml"
    PROTOBUF = "application/vnd.kubernetes.protobuf"


class View(Enum):
    """The form in which an object is returned."""

    OBJECT = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    DISCOVERY = "APIGroupDiscoveryList"


class OutputFormat(Struct, frozen=True, kw_only=True):
    """The format and view of a response. `version` is that of the view's own kind, in meta.k8s.io."""

    format: MediaType
    view: View = View.OBJECT
    version: str = "v1"
    is_list: bool = False
    """Whether the list form of the view is requested, if it has one."""
    pretty: bool = False
    """Whether JSON is indented."""


class Clause(Struct, frozen=True, kw_only=True):
    """One media range of an Accept header."""

    type: str
    subtype: str
    quality: float = 1.0
    parameters: Mapping[str, str] = field(default_factory=dict)

    def covers(self, media_type: str) -> bool:
        kind, _, subtype = media_type.partition("/")
        return (self.type == kind and self.subtype in ("*", subtype)) or self.type == self.subtype == "*"

    @property
    def target(self) -> tuple[str, str, str] | None:
        """Group, version and kind of the requested view; None if none is requested."""
        values = [self.parameters.get(name) for name in ("g", "v", "as")]
        return None if values == [None, None, None] else (values[0] or "", values[1] or "", values[2] or "")


class EndpointType(Enum):
    """The endpoints whose negotiation differs in upstream."""

    BUILT_IN = "objects of built-in kinds"
    WITHOUT_TABLE = "objects that are not shown as a Table"
    CUSTOM = "custom objects, which have no messages in protobuf"
    DISCOVERY = "all groups, versions and resources at once"
    DISCOVERY_UNTIL_1_32 = "the same, in the beta version too"
    DISCOVERY_UNTIL_1_29 = "the same, in the beta version alone"
    PLAIN = "errors, and pages that are shown as they are"

    __hash__ = object.__hash__
    """The hash of Enum is a function in Python, and every request calls it."""


JSON = OutputFormat(format=MediaType.JSON)
FORMATS = tuple(MediaType)
MAX_ACCEPT: Final = 16 * 1024
"""Characters of an Accept header that are parsed, so that a long one does not block the event loop."""
STREAMED_FORMATS: Final = frozenset({MediaType.JSON, MediaType.PROTOBUF})
DISCOVERY_VERSIONS: Final[Mapping[EndpointType, tuple[str, ...]]] = {
    EndpointType.DISCOVERY: ("v2",),
    EndpointType.DISCOVERY_UNTIL_1_32: ("v2", "v2beta1"),
    EndpointType.DISCOVERY_UNTIL_1_29: ("v2beta1",),
}
_WITHOUT_VERSIONS: Final = frozenset({*DISCOVERY_VERSIONS, EndpointType.PLAIN})
DISCOVERY_TARGET: Final = ("apidiscovery.k8s.io", "APIGroupDiscoveryList")
_VIEWS = {
    "Table": View.TABLE,
    "PartialObjectMetadata": View.PARTIAL,
    "PartialObjectMetadataList": View.PARTIAL,
}
_VIEW_VERSIONS = frozenset({"v1", "v1beta1"})


def negotiate(accept: str, endpoint: EndpointType = EndpointType.BUILT_IN) -> OutputFormat | None:
    """Return the first format of an Accept header that an endpoint supports; None if it supports none."""
    return (_negotiate_usual if len(accept) <= _USUAL_LENGTH else _negotiate)(accept, endpoint)


def matches_route(accept: str, produced: tuple[str, ...] = FORMATS) -> bool:
    """Return whether upstream's router finds a route with these media types; it supports no ranges but `*/*`."""
    return (_matches_usual if len(accept) <= _USUAL_LENGTH else _matches)(accept, produced)


def _matches(accept: str, produced: tuple[str, ...]) -> bool:
    if not accept:
        return True
    names = (clause.partition(";")[0].strip(" ") for clause in _truncate(accept).split(","))
    return any(name == "*/*" or name in produced for name in names)


def _negotiate(accept: str, endpoint: EndpointType) -> OutputFormat | None:
    if not accept:
        return JSON
    for clause in parse_accept(accept):
        for format_ in FORMATS:
            if clause.covers(format_) and (output_format := _choose(format_, clause, endpoint)) is not None:
                return output_format
    return None


def _choose(format_: MediaType, clause: Clause, endpoint: EndpointType) -> OutputFormat | None:
    parameters = clause.parameters
    stream, server_version = parameters.get("stream"), parameters.get("sv")
    if stream and (stream != "watch" or format_ not in STREAMED_FORMATS):
        return None
    if server_version and (endpoint in _WITHOUT_VERSIONS or server_version != "v1"):
        return None
    pretty, target = parameters.get("pretty") == "1", clause.target
    if endpoint in DISCOVERY_VERSIONS:
        group, version, kind = target or ("", "", "")
        is_discovery = (group, kind) == DISCOVERY_TARGET and version in DISCOVERY_VERSIONS[endpoint]
        return (
            OutputFormat(format=format_, view=View.DISCOVERY, version=version, pretty=pretty)
            if is_discovery
            else None
        )
    if target is None:
        if endpoint is EndpointType.CUSTOM and format_ is MediaType.PROTOBUF:
            return None
        return OutputFormat(format=format_, pretty=pretty)
    group, version, kind = target
    view = _VIEWS.get(kind)
    if (
        endpoint is EndpointType.PLAIN
        or view is None
        or group != "meta.k8s.io"
        or version not in _VIEW_VERSIONS
    ):
        return None
    if view is View.TABLE and (format_ is MediaType.PROTOBUF or endpoint is EndpointType.WITHOUT_TABLE):
        return None
    is_list = kind.endswith("List")
    return OutputFormat(format=format_, view=view, version=version, is_list=is_list, pretty=pretty)


def parse_accept(header: str) -> list[Clause]:
    """Return the valid clauses in order of preference."""
    clauses = [clause for part in _truncate(header).split(",") if (clause := _clause(part)) is not None]
    if len(clauses) > _SORTED_BY_INSERTION:
        return sorted(clauses, key=_by_preference)
    # Upstream's order is not transitive, so the result depends on the sort algorithm.
    for end in range(1, len(clauses)):
        position = end
        while position and _precedes(clauses[position], clauses[position - 1]):
            clauses[position], clauses[position - 1] = clauses[position - 1], clauses[position]
            position -= 1
    return clauses


def _truncate(header: str) -> str:
    """Return the clauses that end within the first MAX_ACCEPT characters."""
    return header if len(header) <= MAX_ACCEPT else header[: MAX_ACCEPT + 1].rpartition(",")[0]


def _precedes(clause: Clause, other: Clause) -> bool:
    return (
        clause.quality > other.quality
        or (clause.type != "*" and other.type == "*")
        or (clause.subtype != "*" and other.subtype == "*")
    )


def _by_preference(clause: Clause) -> tuple[float, bool, bool]:
    return (-clause.quality, clause.type == "*", clause.subtype == "*")


def _clause(part: str) -> Clause | None:
    name, _, rest = part.strip(" ").partition(";")
    kind, _, subtype = name.partition("/")
    kind = kind.strip(" ")
    if not subtype and kind == "*":
        subtype = "*"
    before, _, after = subtype.partition("/")
    if not subtype or after:
        return None
    quality, parameters = 1.0, {}
    for parameter in rest.split(";") if rest else ():
        key, _, value = parameter.partition("=")
        if not value or value.partition("=")[2]:
            continue
        value, key = value.removesuffix("="), key.strip(" ")
        if key == "q":
            quality = float(value) if _NUMBER.fullmatch(value) else 0.0
        else:
            parameters[key] = value.strip(" ")
    return Clause(type=kind, subtype=before.strip(" "), quality=quality, parameters=parameters)


def parse_media_type(content_type: str) -> str:
    """Return the media type of a Content-Type header in lower case; "" if Go's mime.ParseMediaType refuses the header."""
    return (_parse_usual if len(content_type) <= _USUAL_LENGTH else _parse)(content_type)


def patch_media_type(content_type: str) -> str:
    """Return the type of a patch: upstream cuts off the parameters and compares the rest as it is."""
    return content_type.partition(";")[0] or content_type


def consumes(content_type: str, types: Collection[str]) -> bool:
    """Return whether upstream's router finds a route that consumes these types: any part of the header may match."""
    return any(part.partition(";")[0].strip(" ") in types for part in content_type.split(","))


def _parse(header: str) -> str:
    base = header.partition(";")[0]
    media_type = base.lower().strip()
    if _MEDIA_TYPE.fullmatch(media_type) is None:
        return ""
    values: dict[str, str] = {}
    position = len(base)
    while _END.match(header, position) is None:
        parameter = _PARAMETER.match(header, position)
        if parameter is None:
            return ""
        name, token, quoted = parameter.groups()
        value = token or _ESCAPED.sub(r"\1", quoted)
        if values.setdefault(name.lower(), value) != value:
            return ""
        position = parameter.end()
    return media_type


_WORD: Final = r"[A-Za-z0-9_!#$%&'*+.^`{|}~-]+"
_MEDIA_TYPE: Final = re.compile(f"{_WORD}(?:/{_WORD})?")
_PARAMETER: Final = re.compile(
    rf"""\s*;\s*({_WORD})\s*=\s*(?:({_WORD})|"((?:\\[()<>@,;:\\"/\[\]?=]|[^"\r\n])*+)")"""
)
_ESCAPED: Final = re.compile(r'\\([()<>@,;:\\"/\[\]?=])')
_END: Final = re.compile(r"\s*+(?:;\s*+)?\Z")
_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?")
_SORTED_BY_INSERTION: Final = 12
"""The maximum number of items that Go sorts by insertion."""
# Clients send the same few headers; long ones are rare, and are not cached, to limit the memory.
_USUAL_LENGTH: Final = 400
_negotiate_usual = lru_cache(maxsize=512)(_negotiate)
_matches_usual = lru_cache(maxsize=512)(_matches)
_parse_usual = lru_cache(maxsize=512)(_parse)
