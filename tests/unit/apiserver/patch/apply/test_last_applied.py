"""Migration from `kubectl apply` to `kubectl apply --server-side`."""

import orjson
import pytest

from mockube.apiserver.patch.apply import Conflicts, FieldManager, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from tests.support.server.typed import THING

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

EMPTY = {"apiVersion": "v1", "kind": "Thing", "metadata": {}, "spec": {}, "status": {}}
FIELDS = FieldManager(
    kind="Thing", versions=VersionConverter(own="v1", atoms={"v1": atom_of_type(THING)}), empty=EMPTY
)


def custom_object(spec, **metadata):
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", **metadata}, "spec": spec}


def client_applied_object(spec, last_applied, **annotations):
    """Return an object that client-side apply created."""
    text = last_applied if isinstance(last_applied, str) else orjson.dumps(last_applied).decode()
    made = custom_object(spec, annotations={ANNOTATION: text, **annotations})
    made = FIELDS.update(EMPTY, made, manager="kubectl-client-side-apply", time="T1")
    return made | {"metadata": {"uid": "1"} | made["metadata"]}


def apply(live, config, manager="kubectl"):
    return FIELDS.apply(live, config, manager=manager, time="T2")


def test_kubectl_apply_takes_over_last_applied_fields():
    live = client_applied_object({"replicas": 1}, custom_object({"replicas": 1}))
    after = apply(live, custom_object({"replicas": 2}))
    assert after["spec"] == {"replicas": 2}
    assert [entry["manager"] for entry in after["metadata"]["managedFields"]] == [
        "kubectl",
        "kubectl-client-side-apply",
    ]


def test_last_applied_annotation_is_used_for_kubectl_only():
    live = client_applied_object({"replicas": 1}, custom_object({"replicas": 1}))
    with pytest.raises(Conflicts):
        apply(live, custom_object({"replicas": 2}), "other")


def test_field_changed_since_last_applied_is_a_conflict():
    live = client_applied_object(
        {"replicas": 5, "paused": True}, custom_object({"replicas": 1, "paused": True})
    )
    with pytest.raises(Conflicts) as refused:
        apply(live, custom_object({"replicas": 2, "paused": False}))
    assert [conflict.field for conflict in refused.value.conflicts] == [".spec.replicas"]


@pytest.mark.parametrize(
    "last_applied",
    [
        pytest.param("{", id="no JSON"),
        pytest.param([1], id="no object"),
        pytest.param(custom_object({"replicas": 1}) | {"kind": ""}, id="no kind"),
        pytest.param(custom_object({"replicas": 1}) | {"apiVersion": "v2"}, id="another version"),
        pytest.param(custom_object({"replicas": 1, "bogus": 1}), id="not of its type"),
    ],
)
def test_unusable_last_applied_annotation_is_ignored(last_applied):
    with pytest.raises(Conflicts):
        apply(client_applied_object({"replicas": 1}, last_applied), custom_object({"replicas": 2}))


def test_live_object_of_wrong_type_ignores_last_applied():
    live = client_applied_object({"replicas": 1}, custom_object({"replicas": 1}))
    twice = live | {"metadata": live["metadata"] | {"finalizers": ["a", "a"]}}
    with pytest.raises(Conflicts):
        apply(twice, custom_object({"replicas": 2}))


def test_last_applied_annotation_is_updated_by_server_side_apply():
    live = client_applied_object({"replicas": 1}, custom_object({"replicas": 1}))
    annotations = live["metadata"]["annotations"] | {"b": "c"}
    config = custom_object({"replicas": 2, "nodeSelector": {"z": "<", "a": "1"}}, annotations=annotations)
    after = apply(live, config)
    assert after["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"v1","kind":"Thing","metadata":{"annotations":{"b":"c"},"name":"x"},'
        '"spec":{"nodeSelector":{"a":"1","z":"\\u003c"},"replicas":2}}\n'
    )


def test_last_applied_annotation_is_not_added():
    live = FIELDS.update(EMPTY, custom_object({"replicas": 1}), manager="u", time="T1")
    assert "annotations" not in apply(live, custom_object({"replicas": 1}))["metadata"]


def test_oversized_last_applied_annotation_is_removed():
    live = client_applied_object({"replicas": 1}, custom_object({"replicas": 1}), big="x" * 262_000)
    after = apply(live, custom_object({"replicas": 2}, annotations={"more": "y" * 200}))
    assert set(after["metadata"]["annotations"]) == {"big", "more"}
