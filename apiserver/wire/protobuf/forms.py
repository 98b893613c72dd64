"""Messages that JSON does not write as an object of their fields.

A form is two pure functions between a message's plain tree (its fields by name) and what JSON shows. Knows nothing of
bytes or tables. `from_json(None)` is what Go writes for an unset value.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from mockube.apiserver.wire.protobuf.times import (
    format_duration,
    format_micro_time,
    format_time,
    parse_duration,
    parse_time,
)

Json: TypeAlias = Any
Plain: TypeAlias = dict[str, Json]


class Form(Struct, frozen=True, kw_only=True):
    to_json: Callable[[Plain], Json]
    from_json: Callable[[Json], Plain]
    shared: bool = False
    """JSON shows a string or a number: many trees may hold the same one."""


# --- a message that stands for its only field


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
    """JSON may give a quantity as a bare number."""
    return {"string": "0" if value is None else str(value) if type(value) in (int, float) else value}


_QUANTITY = Form(
    to_json=lambda plain: plain.get("string", "0"),
    from_json=_plain_quantity,
    shared=True,
)

# --- times and durations


def _json_time(plain: Plain) -> Json:
    """Fractions of a second are cut off, as the server does."""
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

# --- one of two

_TYPE_STRING = 1
"""An IntOrString's type where it holds a string; it is 0 where it holds a number."""


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
    """The wire has the kind of top-level objects only; the server adds it to these."""
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
