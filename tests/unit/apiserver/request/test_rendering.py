"""Lists in each format, with more objects than are rendered in one slice."""

import orjson
import pytest

from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apiserver.event_loop import SLICE
from mockube.apiserver.kinds.built_in_kinds import GROUPS, printer_of_kind
from mockube.apiserver.registry.request_context import ListResult, RequestContext
from mockube.apiserver.request import rendering
from mockube.apiserver.request.rendering import Renderer
from mockube.apiserver.request.response import LazyParts, json_body
from mockube.apiserver.storage.stored_object import StoredObject, canonical
from mockube.apiserver.user import User
from mockube.apiserver.wire.negotiation import MediaType, OutputFormat, View
from mockube.apiserver.wire.protobuf import envelope
from mockube.component_base.clock import SteppedClock

ROWS = {row.kind: row for group in GROUPS for row in group.resources}
NAMES = [f"n{number:03}" for number in range(2 * SLICE + 1)]


def stored_object(kind, name, revision, **fields):
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2030-01-01T00:00:00Z"}
    tree = {"kind": kind, "apiVersion": ROWS[kind].api_version, "metadata": metadata, **fields}
    return StoredObject(name.encode(), canonical(tree), revision)


def printer_of(api_version, kind):
    return printer_of_kind(GroupKind(GroupVersion.parse(api_version).group, kind))


async def rendered_list(kind, items, format_, view, *, named=False, **query):
    row = ROWS[kind]
    context = RequestContext(verb="list", resource=row, user=User(name="u"), query=query)
    answer = ListResult(
        api_version=row.api_version,
        kind=row.list_kind,
        items=items,
        metadata={"resourceVersion": "9"},
        named=named,
    )
    renderer = Renderer(printer_of, SteppedClock())
    return b"".join(
        await renderer.collection(context, answer, OutputFormat(format=format_, view=view, is_list=True))
    )


@pytest.fixture
def maps():
    return [
        stored_object("ConfigMap", name, revision, data={"a": "b"}) for revision, name in enumerate(NAMES, 1)
    ]


async def test_list_has_list_kind_and_items_without_kind(maps):
    listed = orjson.loads(await rendered_list("ConfigMap", maps, MediaType.JSON, View.OBJECT))
    assert (listed["kind"], listed["apiVersion"], listed["metadata"]) == (
        "ConfigMapList",
        "v1",
        {"resourceVersion": "9"},
    )
    assert [item["metadata"]["name"] for item in listed["items"]] == NAMES
    assert listed["items"][0].keys() == {"metadata", "data"}


@pytest.mark.parametrize("named", [False, True])
async def test_large_list_is_rendered_as_a_small_one(maps, monkeypatch, named):
    small = await rendered_list("ConfigMap", maps, MediaType.JSON, View.OBJECT, named=named)
    monkeypatch.setattr(rendering, "MAX_KEPT_ITEMS", 1)
    others = [StoredObject(stored.key, stored.value, stored.revision) for stored in maps]
    assert await rendered_list("ConfigMap", others, MediaType.JSON, View.OBJECT, named=named) == small
    assert all(len(stored.item_parts()) == 2 for stored in others)  # no item is kept


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("has_items", [False, True])
async def test_parts_of_large_list_are_made_while_they_are_written(maps, monkeypatch, named, has_items):
    monkeypatch.setattr(rendering, "MAX_KEPT_ITEMS", 1)
    if has_items:
        _ = [stored.item for stored in maps]
    answer = ListResult(api_version="v1", kind="ConfigMapList", items=maps, metadata={}, named=named)
    output = OutputFormat(format=MediaType.JSON, view=View.OBJECT, is_list=True)
    context = RequestContext(verb="list", resource=ROWS["ConfigMap"], user=User(name="u"), query={})
    parts = await Renderer(printer_of, SteppedClock()).collection(context, answer, output)
    assert isinstance(parts, LazyParts)
    text = b"".join(json_body(parts, pretty=False))
    assert (parts.size + 1, text[-3:]) == (len(text), b"]}\n")
    assert [item["metadata"]["name"] for item in orjson.loads(text)["items"]] == NAMES
    assert b"".join(parts) == text[:-1], "they can be made again"


async def test_list_is_rendered_as_protobuf(maps):
    listed = envelope.decode(await rendered_list("ConfigMap", maps, MediaType.PROTOBUF, View.OBJECT))
    assert (listed["kind"], listed["metadata"]["resourceVersion"]) == ("ConfigMapList", "9")
    assert [item["metadata"]["name"] for item in listed["items"]] == NAMES
    assert listed["items"][-1]["metadata"]["resourceVersion"] == str(len(NAMES))


@pytest.mark.parametrize(
    ("format_", "read"), [(MediaType.JSON, orjson.loads), (MediaType.PROTOBUF, envelope.decode)]
)
async def test_list_is_rendered_as_partial_metadata(maps, format_, read):
    listed = read(await rendered_list("ConfigMap", maps, format_, View.PARTIAL))
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert [item["metadata"]["name"] for item in listed["items"]] == NAMES
    assert "data" not in listed["items"][0]


async def test_table_has_row_per_object(maps):
    made = orjson.loads(
        await rendered_list("ConfigMap", maps, MediaType.JSON, View.TABLE, includeObject=["None"])
    )
    assert [column["name"] for column in made["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"] for row in made["rows"]] == [[name, 1, "0s"] for name in NAMES]
    assert made["rows"][0]["object"] is None


async def test_table_rows_may_be_sorted_by_kind():
    precedences = {"a": 900, "z": 1, "c": 5, "b": 5}
    items = [
        stored_object("FlowSchema", name, 1, spec={"matchingPrecedence": precedence})
        for name, precedence in precedences.items()
    ]
    made = orjson.loads(await rendered_list("FlowSchema", items, MediaType.JSON, View.TABLE))
    assert [row["cells"][0] for row in made["rows"]] == ["z", "b", "c", "a"]
