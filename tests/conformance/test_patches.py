"""Patched objects and their managed fields equal those of a real server, for every recorded patch.

Each patch is applied to the object that the server had returned just before, by the pure functions alone: patch, decode,
default, field ownership. Changes by other parts of the server are removed from both sides.
"""

import re
from typing import Any, NamedTuple

import orjson
import pytest

from mockube.apimachinery.patch import json_merge, strategic
from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds.kind_rules import Defaulter
from mockube.apiserver.patch import json_patch
from mockube.apiserver.patch.apply import Conflicts, FieldManager, ObjectTypeError, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.patch.apply.fieldset import of_fields
from mockube.apiserver.schema.decode import Decoder
from mockube.component_base.clock import SteppedClock
from tests.support.recorded import recordings

SCHEMAS = builtin.load()
DECODER = Decoder()
DEFAULTER = Defaulter(SCHEMAS, clock=SteppedClock())
NOW = recordings.filled_in("<time>")

PATCH = {
    "application/json-patch+json": lambda tree, patch, _: json_patch.apply(tree, patch),
    "application/merge-patch+json": lambda tree, patch, _: json_merge.apply(tree, patch),
    "application/strategic-merge-patch+json": strategic.apply,
}
APPLY = "application/apply-patch+yaml"

PATH = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/(?!status|finalize))?[^/?]+"
    r"(?:/(?P<name>[^/?]+))?(?:/(?P<subresource>[^/?]+))?(?:\?(?P<query>.*))?"
)
RESETS = {"": ("status",), "status": ("spec",)}
"""The replayed verbs, each with the fields that it cannot change."""

MADE_ELSEWHERE = {"update/namespace-finalize#1": "the finalizers of a namespace are kept by its strategy"}

ELSEWHERE = ("generation", "resourceVersion", "managedFields")
"""Metadata that a patch cannot set."""


class Write(NamedTuple):
    """A write that a real server carried out or refused, and the object just before; None if there was none."""

    request: Any
    subresource: str
    query: dict[str, str]
    before: Any
    status: int
    answer: Any

    @property
    def body(self):
        return recordings.filled_in(self.request["body"])

    @property
    def media_type(self):
        return (self.request.get("headers") or {}).get("Content-Type", "")


def writes(case):
    """Yield the case's writes, each with the last response for the same object before."""
    seen: dict[str, Any] = {}
    for request, response in recordings.steps(case):
        path, answer = PATH.fullmatch(request.get("path") or ""), recordings.filled_in(response.get("body"))
        if path is None or not isinstance(answer, dict):
            continue
        name = recordings.filled_in(path["name"]) or (answer.get("metadata") or {}).get("name", "")
        if request["method"] in ("POST", "PATCH") and request.get("body") is not None:
            query = dict(pair.split("=", 1) for pair in (path["query"] or "").split("&") if "=" in pair)
            subresource = path["subresource"] or ""
            yield Write(request, subresource, query, seen.get(name), response["status"], answer)
        if path["subresource"] and path["subresource"] not in RESETS:
            # The object changed, and the response does not contain it.
            seen.pop(name, None)
        elif answer["kind"] != "Status" and SCHEMAS.kind(answer.get("apiVersion", ""), answer["kind"]):
            seen[name] = answer


def parameters(choose, cases):
    return [
        pytest.param(write, id=f"{parameter.id}#{number}")
        for parameter in cases
        for number, write in enumerate(writes(parameter.values[0]))
        if choose(write) and f"{parameter.id}#{number}" not in MADE_ELSEWHERE
    ]


def kind_of(tree):
    return SCHEMAS.kind(tree["apiVersion"], tree["kind"])


def as_stored(tree):
    """Return the tree as it would be stored."""
    made = {"apiVersion": tree["apiVersion"], "kind": tree["kind"]} | DECODER.decode(kind_of(tree), tree).tree
    DEFAULTER.default_object(made["apiVersion"], made["kind"], made)
    if tree["metadata"].get("managedFields") == []:
        # Go writes no empty list, but reads it as one.
        made["metadata"]["managedFields"] = []
    return made


# --- patched objects


def is_patch(write):
    return (
        write.media_type in PATCH
        and write.status == 200
        and write.subresource in RESETS
        and write.before is not None
        and write.before["kind"] == write.answer["kind"]
    )


def comparable_parts(write, tree):
    metadata = {name: value for name, value in tree["metadata"].items() if name not in ELSEWHERE}
    if write.subresource:
        return {"metadata": metadata, "status": tree.get("status")}
    return {name: value for name, value in tree.items() if name != "status"} | {"metadata": metadata}


@pytest.mark.parametrize("write", parameters(is_patch, recordings.cases()))
def test_patched_object_matches_recording(write):
    made = as_stored(PATCH[write.media_type](write.before, write.body, kind_of(write.before)))
    assert comparable_parts(write, made) == comparable_parts(write, write.answer)


# --- managed fields


def is_managed(write):
    is_known = write.before is not None or write.status in (201, 500)
    return is_known and write.subresource in RESETS and "fieldManager" in write.query


def field_manager(write, api_version, kind):
    bare = {"apiVersion": api_version, "kind": kind}
    versions = VersionConverter(
        own=api_version,
        atoms={api_version: atom_of_type(SCHEMAS.kind(api_version, kind))},
        reset_fields={api_version: of_fields(*RESETS[write.subresource])},
    )
    empty = bare | DECODER.decode(SCHEMAS.kind(api_version, kind), bare).tree
    return FieldManager(kind=kind, versions=versions, empty=empty, subresource=write.subresource)


def owners(tree):
    """Return the entries with their fields as text: their order counts; the recorded times may be out of order."""
    entries = [
        entry | {"fieldsV1": orjson.dumps(entry["fieldsV1"])}
        for entry in tree["metadata"].get("managedFields", [])
    ]
    return sorted(entries, key=lambda entry: (entry["operation"], entry["manager"]))


def object_after(write):
    """Return the object after the write, with its managed fields."""
    named = write.answer if write.answer["kind"] != "Status" else write.before or write.body
    fields = field_manager(write, named["apiVersion"], named["kind"])
    settings = {"manager": write.query["fieldManager"], "time": NOW}
    live = write.before or fields.empty
    if write.media_type == APPLY:
        return fields.apply(live, write.body, force=write.query.get("force") == "true", **settings)
    if write.media_type:
        new = as_stored(PATCH[write.media_type](live, write.body, kind_of(live)))
    else:
        new = as_stored(write.body)
    return fields.update(live, new, **settings)


MANAGED = recordings.cases("api/managedfields.jsonl")


@pytest.mark.parametrize("write", parameters(lambda write: is_managed(write) and write.status < 300, MANAGED))
def test_managed_fields_match_recording(write):
    assert owners(object_after(write)) == owners(write.answer)


def is_refused(write):
    return is_managed(write) and write.media_type == APPLY and write.status in (409, 500)


@pytest.mark.parametrize("write", parameters(is_refused, MANAGED))
def test_apply_errors_match_recording(write):
    with pytest.raises((Conflicts, ObjectTypeError)) as refused:
        object_after(write)
    assert str(refused.value) == write.answer["message"]
    causes = [cause["field"] for cause in write.answer.get("details", {}).get("causes", [])]
    assert [conflict.field for conflict in getattr(refused.value, "conflicts", [])] == causes
