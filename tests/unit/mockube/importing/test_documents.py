"""Documents in a file: formats, positions, and the errors of unreadable ones."""

import orjson
import pytest

from mockube.apiserver.wire import yaml_codec
from mockube.importing.documents import InvalidDocument, read

LIST = b"""apiVersion: v1
items:
- apiVersion: v1
  data:
    text: |
      - a
      kind: b

      c
  kind: ConfigMap
  metadata:
    name: a
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: b}
kind: List
metadata:
  resourceVersion: ""
"""


def documents_of(data, file="f"):
    return [
        (str(one.origin), one.problem if isinstance(one, InvalidDocument) else one.tree)
        for one in read(data, file)
    ]


def config_map(name, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def text_of(tree):
    return yaml_codec.dump(tree)


def test_list_printed_by_kubectl_is_read():
    assert documents_of(LIST) == [
        ("f: document 1, item 1", config_map("a", data={"text": "- a\nkind: b\n\nc\n"})),
        ("f: document 1, item 2", config_map("b")),
    ]


def test_document_is_read_equally_in_every_format():
    trees = [config_map("a", data={"k": "v"}), config_map("b")]
    whole = {"apiVersion": "v1", "kind": "List", "items": trees}
    as_yaml = text_of(whole)
    indented = b"kind: List\nitems:\n  - " + b"  - ".join(
        text_of(tree).replace(b"\n", b"\n    ").rstrip() + b"\n" for tree in trees
    )
    as_json = orjson.dumps(whole)
    for text in (as_yaml, indented, as_yaml.replace(b"\n", b"\r\n"), as_json):
        assert [tree for _, tree in documents_of(text)] == trees
    flow = b"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}"
    assert [tree for _, tree in documents_of(flow)] == [config_map("a")]


def test_documents_are_counted_without_empty_ones():
    data = b"---\n# nothing\n---\n" + text_of(config_map("a")) + b"---  # next\n" + text_of(config_map("b"))
    assert [origin for origin, _ in documents_of(data)] == ["f: document 1", "f: document 2"]


def test_item_of_typed_list_gets_kind():
    data = b'{"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}]}'
    assert documents_of(data) == [("f: document 1, item 1", config_map("a"))]


def test_items_of_list_with_metadata_are_read():
    """The chart of aws-load-balancer-controller has such a list of its classes."""
    data = b"apiVersion: v1\nkind: List\nmetadata:\n  name: classes\n  labels: {a: b}\nitems:\n- " + text_of(
        config_map("a")
    ).replace(b"\n", b"\n  ")
    assert documents_of(data) == [("f: document 1, item 1", config_map("a"))]


@pytest.mark.parametrize("encode", [orjson.dumps, text_of])
def test_list_in_list_is_read_as_its_items(encode):
    inner = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    typed = {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "c"}}]}
    tree = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [inner, config_map("d"), typed, {**inner, "items": []}],
    }
    found = [(each.tree["metadata"]["name"], each.origin.item) for each in read(encode(tree), "f")]
    assert found == [("a", 1), ("b", 1), ("d", 2), ("c", 3)]


@pytest.mark.parametrize("kind", ["Menu", "AllowList"])
def test_object_with_own_items_field_is_no_list(kind):
    tree = {
        "apiVersion": "example.com/v1",
        "items": [{"a": 1}, {"b": 2}],
        "kind": kind,
        "metadata": {"name": "m"},
    }
    assert documents_of(text_of(tree)) == [("f: document 1", tree)]


def test_dates_are_read_as_texts():
    data = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, creationTimestamp: 2026-01-01T00:00:00Z}\n"
    assert documents_of(data)[0][1]["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"a: [", "did not find expected node content", id="no YAML"),
        pytest.param(b"just words", "not an object: it is a text", id="no object"),
        pytest.param(b"kind: Pod", "not an object: apiVersion is not set", id="no version"),
        pytest.param(b"apiVersion: v1\nkind: Pod", "metadata is not set", id="no metadata"),
        pytest.param(b"{apiVersion: v1, kind: Pod, metadata: {}}", "metadata.name is not set", id="no name"),
        pytest.param(
            b"{apiVersion: v1, kind: Pod, metadata: {name: a, labels: [b]}}",
            "metadata.labels is a list, and must be an object",
            id="no labels",
        ),
        pytest.param(b"{apiVersion: a/b/c, kind: Pod, metadata: {name: a}}", "a/b/c", id="no API version"),
        pytest.param(b'{"kind": "Pod",', "expected", id="no JSON"),
    ],
)
def test_unreadable_document_does_not_hide_others(data, problem):
    (origin, told), (_, tree) = documents_of(data + b"\n---\n" + text_of(config_map("a")))
    assert (origin, problem in told) == ("f: document 1", True)
    assert tree == config_map("a")


def test_unreadable_item_does_not_hide_others():
    data = LIST.replace(b"  kind: ConfigMap\n  metadata: {name: b}", b"  kind: [")
    assert [(origin, isinstance(tree, str)) for origin, tree in documents_of(data)] == [
        ("f: document 1, item 1", False),
        ("f: document 1, item 2", True),
    ]
