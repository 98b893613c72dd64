"""The batches in which imported objects are created."""

from hypothesis import given
from hypothesis import strategies as st

from mockube.importing.order import concurrent_batches


def object_of(kind, name, *owners, api_version="v1"):
    references = [{"kind": "X", "name": owner, "uid": owner} for owner in owners]
    metadata = {"name": name, "uid": name, "ownerReferences": references}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def names(trees):
    return [{trees[at]["metadata"]["name"] for at in wave} for wave in concurrent_batches(trees)]


def test_owners_are_created_before_dependents():
    trees = [
        object_of("Deployment", "web", api_version="apps/v1"),
        object_of("ReplicaSet", "web-1", "web", api_version="apps/v1"),
        object_of("Pod", "web-1-a", "web-1"),
        object_of("Pod", "alone"),
        object_of("Pod", "of nobody here", "elsewhere"),
    ]
    assert names(trees) == [{"web-1-a", "alone", "of nobody here"}, {"web-1"}, {"web"}]


def test_dependencies_are_created_first_and_webhooks_last():
    trees = [
        object_of("ValidatingWebhookConfiguration", "hook", api_version="admissionregistration.k8s.io/v1"),
        object_of("Widget", "w", api_version="example.com/v1"),
        object_of("PersistentVolumeClaim", "claim"),
        object_of("PersistentVolume", "volume"),
        object_of("ServiceAccount", "account"),
        object_of("CustomResourceDefinition", "widgets", api_version="apiextensions.k8s.io/v1"),
        object_of("Namespace", "ns"),
    ]
    assert names(trees) == [{"ns"}, {"widgets"}, {"account"}, {"volume"}, {"claim"}, {"w"}, {"hook"}]


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=10))
def test_every_object_is_created_once_with_any_owners(owners):
    trees = [object_of("Pod", str(at), *map(str, of)) for at, of in enumerate(owners)]
    made = [at for wave in concurrent_batches(trees) for at in wave]
    assert sorted(made) == list(range(len(trees)))
