"""The importer reads any file or rejects it with an error that names the cause, and prepares it without a crash."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from mockube.importing.cleaning import (
    clean_object,
    implied_objects,
    reason_to_skip,
    status_of,
    without_assigned_fields,
)
from mockube.importing.documents import Document, read
from mockube.importing.order import concurrent_batches

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
FIELDS = st.sampled_from(
    ["annotations", "claimRef", "clusterIP", "labels", "metadata", "nodeName", "ports", "template", "uid"]
)
VALUES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(FIELDS, below, max_size=3)
)
KINDS = [
    "Pod",
    "Service",
    "Job",
    "Node",
    "List",
    "PodList",
    "PersistentVolume",
    "Lease",
    "EndpointSlice",
    "Widget",
]
VERSIONS = ["v1", "batch/v1", "discovery.k8s.io/v1", "coordination.k8s.io/v1", "a/b/c"]


def usual_or_any(usual):
    return usual | VALUES


METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": usual_or_any(st.just("a")),
        "uid": usual_or_any(st.sampled_from("uv")),
        "labels": VALUES,
        "annotations": VALUES,
        "ownerReferences": usual_or_any(
            st.just([{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "v"}]),
        ),
        "deletionTimestamp": VALUES,
    },
)
OBJECTS = st.fixed_dictionaries(
    {"apiVersion": usual_or_any(st.sampled_from(VERSIONS)), "kind": usual_or_any(st.sampled_from(KINDS))},
    optional={
        "metadata": usual_or_any(METADATA),
        "spec": VALUES,
        "status": VALUES,
        "items": VALUES | st.lists(METADATA.map(lambda it: {"metadata": it}), max_size=2),
    },
)


@given(st.lists(OBJECTS | VALUES, max_size=4))
def test_any_documents_are_prepared_or_refused(trees):
    data = b"\n---\n".join(map(orjson.dumps, trees))
    objects = [one.tree for one in read(data, "f") if isinstance(one, Document)]
    made = [at for wave in concurrent_batches(objects) for at in wave]
    assert sorted(made) == list(range(len(objects)))
    assert all(tree["metadata"]["name"] for tree in implied_objects(objects))
    for tree in objects:
        reason_to_skip(tree)
        status_of(tree, ())
        clean = clean_object(tree, ())
        assert not {"uid", "ownerReferences", "deletionTimestamp"} & clean["metadata"].keys()
        without_assigned_fields(clean)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data):
    assert all(str(one.origin).startswith("f: document ") for one in read(data, "f"))
