"""What a client wants to be answered in, and what it says it sent."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import lru_cache
from typing import Final


class Format(StrEnum):
    JSON = "application/json"
    YAML = "application/yaml"
    PROTOBUF = "application/vnd.kubernetes.protobuf"


class View(Enum):
    """As what an object is shown."""

    OBJECT = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormat:
    """An answer's form. `version` is that of the view's own kind, in meta.k8s.io."""

    format: Format
    view: View = View.OBJECT
    version: str = "v1"
    listed: bool = False
    """The view is that of a list, where there are two."""


JSON = OutputFormat(format=Format.JSON)
FORMATS = tuple(Format)
WATCH_FORMATS = (Format.JSON, Format.YAML, Format.PROTOBUF)

_RANGES = {
    "*/*": Format.JSON,
    "application/*": Format.JSON,
    "application/json": Format.JSON,
    "application/yaml": Format.YAML,
    "application/vnd.kubernetes.protobuf": Format.PROTOBUF,
}
_VIEWS = {
    "Table": View.TABLE,
    "PartialObjectMetadata": View.PARTIAL,
    "PartialObjectMetadataList": View.PARTIAL,
}
_VIEW_VERSIONS = frozenset({"v1", "v1beta1"})


def negotiate(accept: str, *, custom: bool = False, tables: bool = True) -> OutputFormat | None:
    """The first form of an Accept header that this server can give; None if it can give none of them.

    There are no messages in protobuf for what users define, and not everything is shown as a Table.
    """
    return (_wanted_usual if len(accept) <= _USUAL_LENGTH else _wanted)(accept, custom, tables)


def names_known_type(accept: str) -> bool:
    """Whether an Accept header has a media type that this server writes, whatever its parameters ask for."""
    return any(_parse(clause)[0] in _RANGES for clause in accept.split(","))


def _wanted(accept: str, custom: bool, tables: bool) -> OutputFormat | None:  # noqa: FBT001 - cached by position
    if not accept:
        return JSON
    for clause in _by_quality(accept):
        media_type, parameters = _parse(clause)
        found = _RANGES.get(media_type)
        choice = None if found is None else _choose(found, parameters)
        if choice is None or (custom and _is_message(choice)):
            continue
        if tables or choice.view is not View.TABLE:
            return choice
    return None


def _is_message(choice: OutputFormat) -> bool:
    return choice.format is Format.PROTOBUF and choice.view is View.OBJECT


def _choose(found: Format, parameters: dict[str, str]) -> OutputFormat | None:
    shown_as = parameters.get("as", "")
    if not shown_as:
        return OutputFormat(format=found)
    view, version = _VIEWS.get(shown_as), parameters.get("v", "")
    if view is None or parameters.get("g") != "meta.k8s.io" or version not in _VIEW_VERSIONS:
        return None
    if view is View.TABLE and found is Format.PROTOBUF:  # tables have no such form
        return None
    return OutputFormat(format=found, view=view, version=version, listed=shown_as.endswith("List"))


def sent(content_type: str) -> tuple[str, dict[str, str]]:
    """The media type of a Content-Type header, in lower case, and its parameters."""
    return (_parse_usual if len(content_type) <= _USUAL_LENGTH else _parse)(content_type)


def _by_quality(accept: str) -> list[str]:
    clauses = [clause.strip() for clause in accept.split(",") if clause.strip()]
    return sorted(clauses, key=_quality, reverse=True)  # stable: equals stay in the client's order


def _quality(clause: str) -> float:
    try:
        return float(_parse(clause)[1].get("q", "1"))
    except ValueError:
        return 0.0


def _parse(clause: str) -> tuple[str, dict[str, str]]:
    media_type, *parameters = clause.split(";")
    pairs = (parameter.partition("=") for parameter in parameters)
    return media_type.strip().lower(), {name.strip(): value.strip().strip('"') for name, _, value in pairs}


# Clients send the same few headers again and again; a long one is a rarity that shall not fill the memory.
_USUAL_LENGTH: Final = 400
_wanted_usual = lru_cache(maxsize=512)(_wanted)
_parse_usual = lru_cache(maxsize=512)(_parse)
