"""Messages that are not objects of their fields in JSON, such as times and quantities.

A form has two pure functions, which convert the plain tree of a message (its fields by name) to JSON and back.
`from_json(None)` is what Go writes for an unset value.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from msgspec import Struct

from mockube.apimachinery import durations
from mockube.apimachinery.durations import format_duration

from .varint import ProtobufError

Json: TypeAlias = Any
Plain: TypeAlias = dict[str, Json]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME = -62_135_596_800
"""The first second of the year 1."""
_SECONDS_LENGTH = len("2006-01-02T15:04:05")
_MICROSECONDS = 1_000_000


class Form(Struct, frozen=True, kw_only=True):
    to_json: Callable[[Plain], Json]
    from_json: Callable[[Json], Plain]
    shared: bool = False
    """Whether the JSON is a string or a number, which many trees can share."""


# --- messages with a single field


def _wrapper(name: str) -> Form:
    return Form(
        to_json=lambda plain: plain.get(name),
        from_json=lambda value: {} if value is None else {name: value},
    )


_STRING_LIST = Form(
    to_json=lambda plain: plain.get("items", []),
    from_json=lambda value: {} if value is None else {"items": value},
)


def _plain_quantity(value: Json) -> Plain:
    """Return the message of a quantity, which may be a number in JSON."""
    return {"string": "0" if value is None else str(value) if type(value) in (int, float) else value}


_QUANTITY = Form(
    to_json=lambda plain: plain.get("string", "0"),
    from_json=_plain_quantity,
    shared=True,
)

# --- times and durations


def _json_time(plain: Plain) -> Json:
    """Return the time without fractions of a second, as upstream."""
    return format_time(plain.get("seconds", 0)) if plain else None


def _json_micro_time(plain: Plain) -> Json:
    microseconds = int(plain.get("nanos", 0) / 1000)
    return format_micro_time(plain.get("seconds", 0), microseconds) if plain else None


def _plain_time(value: Json) -> Plain:
    time = None if value is None else parse_time(value)
    return {} if time is None else {"seconds": time[0], "nanos": 0}


def _plain_micro_time(value: Json) -> Plain:
    time = None if value is None else parse_time(value)
    return {} if time is None else {"seconds": time[0], "nanos": time[1] * 1000}


_TIME = Form(to_json=_json_time, from_json=_plain_time, shared=True)
_MICRO_TIME = Form(to_json=_json_micro_time, from_json=_plain_micro_time, shared=True)
_DURATION = Form(
    to_json=lambda plain: format_duration(plain["duration"]),
    from_json=lambda value: {} if value is None else {"duration": parse_duration(value)},
    shared=True,
)

# --- messages that are one of two types

_TYPE_STRING = 1
"""The type of an IntOrString that is a string; 0 is a number."""


def _plain_int_or_string(value: Json) -> Plain:
    if value is None:
        return {}
    return {"type": _TYPE_STRING, "strVal": value} if type(value) is str else {"intVal": value}


_INT_OR_STRING = Form(
    to_json=lambda plain: plain["strVal"] if plain["type"] == _TYPE_STRING else plain["intVal"],
    from_json=_plain_int_or_string,
    shared=True,
)


def _schema_or_list(name: str) -> Form:
    def from_json(value: Json) -> Plain:
        return {} if value is None else {name if type(value) is list else "schema": value}

    return Form(to_json=lambda plain: plain[name] or plain["schema"], from_json=from_json)


def _plain_schema_or_bool(value: Json) -> Plain:
    if value is None or type(value) is bool:
        return {"allows": value or False}
    return {"allows": True, "schema": value}


_SCHEMA_OR_BOOL = Form(
    to_json=lambda plain: plain["allows"] if plain["schema"] is None else plain["schema"],
    from_json=_plain_schema_or_bool,
)

# --- objects within objects


def _items_of(field: str, api_version: str, kind: str) -> Form:
    """Return the form of objects in a list: their messages have no kind, so it is added to the JSON."""
    type_meta = {"kind": kind, "apiVersion": api_version}

    def to_json(plain: Plain) -> Json:
        items = plain.get(field)
        return plain | {field: [type_meta | item for item in items]} if items else plain

    return Form(to_json=to_json, from_json=lambda value: value)


FORMS: Mapping[str, Form] = {
    "meta.v1.Time": _TIME,
    "meta.v1.MicroTime": _MICRO_TIME,
    "meta.v1.Duration": _DURATION,
    "resource.Quantity": _QUANTITY,
    "intstr.IntOrString": _INT_OR_STRING,
    "runtime.RawExtension": _wrapper("raw"),
    "meta.v1.FieldsV1": _wrapper("Raw"),
    "meta.v1.Verbs": _STRING_LIST,
    "authentication.v1.AttestationValue": _STRING_LIST,
    "authentication.v1.ExtraValue": _STRING_LIST,
    "authentication.v1beta1.ExtraValue": _STRING_LIST,
    "authorization.v1.ExtraValue": _STRING_LIST,
    "authorization.v1beta1.ExtraValue": _STRING_LIST,
    "certificates.v1.ExtraValue": _STRING_LIST,
    "certificates.v1beta1.ExtraValue": _STRING_LIST,
    "apiextensions.v1.JSON": _wrapper("raw"),
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or_list("jSONSchemas"),
    "apiextensions.v1.JSONSchemaPropsOrBool": _SCHEMA_OR_BOOL,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or_list("property"),
    "apiextensions.v1beta1.JSON": _wrapper("raw"),
    "apiextensions.v1beta1.JSONSchemaPropsOrArray": _schema_or_list("jSONSchemas"),
    "apiextensions.v1beta1.JSONSchemaPropsOrBool": _SCHEMA_OR_BOOL,
    "apiextensions.v1beta1.JSONSchemaPropsOrStringArray": _schema_or_list("property"),
    "apps.v1.StatefulSetSpec": _items_of("volumeClaimTemplates", "v1", "PersistentVolumeClaim"),
    "meta.v1.PartialObjectMetadataList": _items_of("items", "meta.k8s.io/v1", "PartialObjectMetadata"),
    "meta.v1beta1.PartialObjectMetadataList": _items_of(
        "items", "meta.k8s.io/v1beta1", "PartialObjectMetadata"
    ),
}


def format_time(seconds: int) -> str | None:
    return None if seconds == _ZERO_TIME else f"{_clock(seconds)}Z"


def format_micro_time(seconds: int, microseconds: int) -> str | None:
    ahead, microseconds = divmod(microseconds, _MICROSECONDS)
    seconds += ahead
    if seconds == _ZERO_TIME and microseconds == 0:
        return None
    return f"{_clock(seconds)}.{microseconds:06}Z"


def _clock(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()[:_SECONDS_LENGTH]
    except (OSError, OverflowError, ValueError) as error:
        raise ProtobufError(f"no such time: {seconds} seconds since 1970") from error


def parse_time(text: object) -> tuple[int, int] | None:
    """Return the seconds since 1970 and the microseconds of a time; None for the zero time."""
    if type(text) is not str:
        raise ProtobufError(f"cannot write {type(text).__name__} as a time")
    try:
        since_epoch: timedelta = datetime.fromisoformat(text) - _EPOCH
    except (OverflowError, TypeError, ValueError) as error:
        raise ProtobufError(f"cannot write {text!r} as a time") from error
    seconds = since_epoch.days * 86_400 + since_epoch.seconds
    return None if seconds == _ZERO_TIME else (seconds, since_epoch.microseconds)


def parse_duration(text: str) -> int:
    try:
        return durations.parse_duration(text)
    except durations.DurationError as error:
        raise ProtobufError(str(error)) from error
