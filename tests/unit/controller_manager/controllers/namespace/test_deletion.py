from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery import conditions
from mockube.apimachinery.groups import GroupResource
from mockube.controller_manager.controllers.namespace.deletion import (
    RemainingContent,
    estimate_of,
    with_conditions,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PODS, JOBS = GroupResource("", "pods"), GroupResource("batch", "jobs")


def object_with_finalizers(*finalizers, **metadata):
    return {"metadata": {"name": "a", "finalizers": [*finalizers], **metadata}}


@pytest.mark.parametrize(
    ("resource", "objects", "seconds"),
    [
        pytest.param(PODS, [], 0, id="no pods"),
        pytest.param(PODS, [object_with_finalizers()], 30, id="a pod without deletion timestamp"),
        pytest.param(
            PODS,
            [object_with_finalizers(deletionTimestamp="2030-01-01T00:00:12Z")],
            12,
            id="a pod with a grace period",
        ),
        pytest.param(
            PODS,
            [object_with_finalizers(deletionTimestamp="2029-12-31T23:00:00Z")],
            0,
            id="a pod past its grace period",
        ),
        pytest.param(JOBS, [object_with_finalizers()], 0, id="a job"),
        pytest.param(JOBS, [object_with_finalizers("a/b")], 15, id="job with a finalizer"),
    ],
)
def test_remaining_time_is_estimated(resource, objects, seconds):
    assert estimate_of(resource, objects, NOW) == timedelta(seconds=seconds)


def condition_summaries(remains):
    namespace = with_conditions({"metadata": {"name": "a"}}, remains, NOW)
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in conditions.of(namespace)}


def test_empty_namespace_is_finalized():
    remains = RemainingContent()
    assert remains.is_empty
    assert condition_summaries(remains) == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
        "NamespaceFinalizersRemaining": (
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    }


def test_remaining_content_is_reported():
    remains = RemainingContent()
    remains.add(PODS, [object_with_finalizers(), object_with_finalizers("a/b")], timedelta(seconds=30))
    remains.add(JOBS, [object_with_finalizers("a/b")], timedelta(seconds=15))
    assert not remains.is_empty
    assert remains.estimate == timedelta(seconds=30)
    now_said = condition_summaries(remains)
    assert now_said["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: jobs.batch has 1 resource instances, pods. has 2 resource instances",
    )
    assert now_said["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: a/b in 2 resource instances",
    )


@pytest.mark.parametrize(
    ("remains", "condition", "text"),
    [
        pytest.param(
            RemainingContent(discovery_failures=["metrics.k8s.io/v1"]),
            "NamespaceDeletionDiscoveryFailure",
            "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1",
            id="discovery",
        ),
        pytest.param(
            RemainingContent(deletion_failures=["no", "never"]),
            "NamespaceDeletionContentFailure",
            "Failed to delete all resource types, 2 remaining: never, no",
            id="deletion",
        ),
    ],
)
def test_deletion_failures_are_reported(remains, condition, text):
    assert not remains.is_empty
    status, _, message = condition_summaries(remains)[condition]
    assert (status, message) == ("True", text)


def test_unchanged_conditions_are_not_written():
    namespace = with_conditions({"metadata": {"name": "a"}}, RemainingContent(), NOW)
    assert with_conditions(namespace, RemainingContent(), NOW + timedelta(hours=1)) is None
