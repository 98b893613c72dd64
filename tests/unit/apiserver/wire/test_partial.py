"""Objects as PartialObjectMetadata."""

import pytest

from mockube.apiserver.wire import partial

GENERATION = "deprecated.daemonset.template.generation"


def test_partial_metadata_keeps_metadata_only():
    made = partial.to_partial_metadata(
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}}, "v1"
    )
    assert made == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "a"},
    }


@pytest.mark.parametrize(
    ("kind", "annotations", "shown"),
    [
        ("DaemonSet", {GENERATION: "1"}, None),
        ("DaemonSet", {GENERATION: "1", "a": "b"}, {"a": "b"}),
        ("DaemonSet", {"a": "b"}, {"a": "b"}),
        ("ControllerRevision", {GENERATION: "1"}, {GENERATION: "1"}),
    ],
)
def test_partial_metadata_hides_template_generation(kind, annotations, shown):
    tree = {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": "a", "annotations": annotations}}
    assert partial.to_partial_metadata(tree, "v1")["metadata"].get("annotations") == shown
    assert tree["metadata"]["annotations"] == annotations
