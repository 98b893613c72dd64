"""Validation of Deployments, ReplicaSets and ControllerRevisions."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors
from tests.support.valid_workloads import DEPLOYMENT, METADATA, REPLICA_SET


def deployment(fields):
    return changed(DEPLOYMENT, {f"spec.{path}": value for path, value in fields.items()})


def replica_set(fields):
    return changed(REPLICA_SET, {f"spec.{path}": value for path, value in fields.items()})


def errors_of(change):
    return create_errors("apps/v1", "Deployment", deployment(change))


def update(**fields):
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": fields}}


def status_errors(kind, status, old_status=None):
    base = {"Deployment": DEPLOYMENT, "ReplicaSet": REPLICA_SET}[kind]
    return update_errors(
        "apps/v1", kind, {**base, "status": old_status or {}}, {**base, "status": status}, "status"
    )


def revision(**fields):
    return {"metadata": METADATA, "revision": 1, "data": {}, **fields}


DEPLOYMENTS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"replicas": 0}, [], id="no replicas"),
    pytest.param({"replicas": -1},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"], id="negative replicas"),
    pytest.param({"selector": ABSENT},
        ["spec.selector: Required value",
         ('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="no selector"),
    pytest.param({"selector": {}},
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"], id="empty selector"),
    pytest.param({"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}},
        ['spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
         ('spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Is"}]}: invalid label '
          "selector")], id="invalid selector"),
    pytest.param({"selector": {"matchLabels": {"app": "b"}}},
        [('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="selector of other labels"),
    pytest.param({"template.metadata.labels": {"app": "a", "b c": "d e"}},
        [('spec.template.labels: Invalid value: "b c": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('spec.template.labels: Invalid value: "d e": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid labels"),
    pytest.param({"template.metadata.annotations": {"b c": "d"}},
        [('spec.template.annotations: Invalid value: "b c": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid annotations"),
    pytest.param({"template.spec.containers.0.image": ""},
        ["spec.template.spec.containers[0].image: Required value"], id="invalid pod"),
    pytest.param({"template.spec.containers.0.image": " a"}, [], id="padded image in a template"),
    pytest.param({"template.spec.ephemeralContainers": [{"name": "e", "image": "a", "imagePullPolicy": "Never", "terminationMessagePolicy": "File"}]},
        ["spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
        id="ephemeral containers in a template"),
    pytest.param({"template.spec.restartPolicy": "Never"},
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'], id="pods that end"),
    pytest.param({"template.spec.activeDeadlineSeconds": 1},
        [("spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not "
          "Supported")], id="pods with a deadline"),
    pytest.param({"strategy": ABSENT},
        [('spec.strategy: Unsupported value: {"Type":"","RollingUpdate":null}: supported values: "Recreate", '
          '"RollingUpdate"')], id="no strategy"),
    pytest.param({"strategy": {"type": "Rolling"}},
        [('spec.strategy: Unsupported value: {"Type":"Rolling","RollingUpdate":null}: supported values: '
          '"Recreate", "RollingUpdate"')], id="unknown strategy"),
    pytest.param({"strategy": {"type": "Recreate"}}, [], id="recreation"),
    pytest.param({"strategy": {"type": "Recreate", "rollingUpdate": {}}},
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        id="recreation with parameters"),
    pytest.param({"strategy": {"type": "RollingUpdate"}},
        ["spec.strategy.rollingUpdate: Required value: this should be defaulted and never be nil"],
        id="update without parameters"),
    pytest.param(update(maxUnavailable=0, maxSurge=0),
        ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
        id="update without a spare pod"),
    pytest.param(update(maxUnavailable="0%", maxSurge="0%"),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
        id="update without a spare percentage"),
    pytest.param(update(maxUnavailable="100%", maxSurge="200%"), [], id="update of all pods"),
    pytest.param(update(maxUnavailable="101%", maxSurge=0),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        id="update of more than all pods"),
    pytest.param(update(maxUnavailable=-1, maxSurge=-1),
        ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or equal to 0",
         "spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0"],
        id="update of negative numbers"),
    pytest.param(update(maxUnavailable="1", maxSurge="a%"),
        [('spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "1": a valid percent string must be a '
          "numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
          "'[0-9]+%')"),
         ('spec.strategy.rollingUpdate.maxSurge: Invalid value: "a%": a valid percent string must be a numeric '
          "string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')")],
        id="update of no percentages"),
    pytest.param(update(maxUnavailable="-1%", maxSurge=1),
        [('spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "-1%": a valid percent string must be a '
          "numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
          "'[0-9]+%')")], id="update of negative percentages"),
    pytest.param({"minReadySeconds": -1},
        ["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"],
        id="negative time until pods are ready"),
    pytest.param({"revisionHistoryLimit": -1},
        ["spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"],
        id="negative limit of revisions"),
    pytest.param({"progressDeadlineSeconds": 11, "minReadySeconds": 10}, [], id="deadline after pods are ready"),
    pytest.param({"progressDeadlineSeconds": 10, "minReadySeconds": 10},
        ["spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"],
        id="deadline before pods are ready"),
    pytest.param({"progressDeadlineSeconds": -1},
        ["spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
         "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds"],
        id="negative deadline"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), DEPLOYMENTS)
def test_deployments_are_validated(change, expected):
    assert errors_of(change) == expected


DEPLOYMENT_UPDATES = [
    pytest.param({}, {"template.spec.containers.0.image": "b"}, [], id="image"),
    pytest.param({}, {"selector": {"matchLabels": {"app": "b"}}, "template.metadata.labels": {"app": "b"}},
        ['spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'], id="selector"),
    pytest.param({"template.spec.containers.0.resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}}, {"template.spec.containers.0.resources": {"limits": {"hugepages-2Mi": "5Mi", "cpu": "1"}}},
        [], id="part of a huge page stays"),
    pytest.param({}, {"template.spec.containers.0.resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}},
        [('spec.template.spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not '
          "positive integer multiple of hugepages-2Mi")], id="part of a huge page is new"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), DEPLOYMENT_UPDATES)
def test_changes_of_deployments_are_validated(old, new, expected):
    assert update_errors("apps/v1", "Deployment", deployment(old), deployment(new)) == expected


REPLICA_SETS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"replicas": -1, "minReadySeconds": -1},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0",
         "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"], id="negative numbers"),
    pytest.param({"selector": ABSENT},
        ["spec.selector: Required value",
         ('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="no selector"),
    pytest.param({"template": ABSENT},
        ["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
         "spec.template.spec.terminationGracePeriodSeconds: Required value",
         "spec.template.spec.containers: Required value",
         "spec.template.spec.restartPolicy: Required value",
         "spec.template.spec.dnsPolicy: Required value",
         'spec.template.spec.restartPolicy: Unsupported value: "": supported values: "Always"'], id="no template"),
    pytest.param({"selector": {"matchLabels": {"app": "b"}}},
        [('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="selector of other labels"),
    pytest.param({"template.spec.restartPolicy": "OnFailure"},
        ['spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'],
        id="pods that end"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), REPLICA_SETS)
def test_replica_sets_are_validated(change, expected):
    assert create_errors("apps/v1", "ReplicaSet", replica_set(change)) == expected


REPLICA_SET_UPDATES = [
    pytest.param({}, {"replicas": 2}, [], id="replicas"),
    pytest.param({}, {"selector": {"matchLabels": {"app": "b"}}, "template.metadata.labels": {"app": "b"}},
        ['spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'], id="selector"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), REPLICA_SET_UPDATES)
def test_changes_of_replica_sets_are_validated(old, new, expected):
    assert update_errors("apps/v1", "ReplicaSet", replica_set(old), replica_set(new)) == expected


DEPLOYMENT_STATUS = [
    pytest.param({}, {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 1, "unavailableReplicas": 4},
        [], id="counts"),
    pytest.param({}, {"observedGeneration": -1, "replicas": -1, "updatedReplicas": -2, "readyReplicas": -2, "availableReplicas": -2, "unavailableReplicas": -1, "terminatingReplicas": -1, "collisionCount": -1},
        ["status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
         "status.replicas: Invalid value: -1: must be greater than or equal to 0",
         "status.updatedReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.readyReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.availableReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.unavailableReplicas: Invalid value: -1: must be greater than or equal to 0",
         "status.terminatingReplicas: Invalid value: -1: must be greater than or equal to 0",
         "status.collisionCount: Invalid value: -1: must be greater than or equal to 0"], id="negative counts"),
    pytest.param({}, {"replicas": 1, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2},
        ["status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas"], id="more than all"),
    pytest.param({}, {"replicas": 3, "readyReplicas": 1, "availableReplicas": 2},
        ["status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"],
        id="more available than ready"),
    pytest.param({"collisionCount": 2}, {"collisionCount": 1},
        ["status.collisionCount: Invalid value: 1: cannot be decremented"], id="fewer collisions"),
    pytest.param({"collisionCount": 2}, {},
        ["status.collisionCount: Invalid value: 0: cannot be decremented"], id="no collisions"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), DEPLOYMENT_STATUS)
def test_status_of_deployments_is_validated(old, new, expected):
    assert status_errors("Deployment", new, old) == expected


REPLICA_SET_STATUS = [
    pytest.param({}, {"replicas": -1, "fullyLabeledReplicas": -2, "readyReplicas": -2, "availableReplicas": -2, "observedGeneration": -1, "terminatingReplicas": -1},
        ["status.replicas: Invalid value: -1: must be greater than or equal to 0",
         "status.fullyLabeledReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.readyReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.availableReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
         "status.terminatingReplicas: Invalid value: -1: must be greater than or equal to 0"], id="negative counts"),
    pytest.param({}, {"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 3},
        ["status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas"], id="more than all"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), REPLICA_SET_STATUS)
def test_status_of_replica_sets_is_validated(old, new, expected):
    assert status_errors("ReplicaSet", new, old) == expected


REVISIONS = [
    pytest.param({}, [], id="data"),
    pytest.param({"revision": -1},
        ["revision: Invalid value: -1: must be greater than or equal to 0"], id="negative revision"),
    pytest.param({"data": None}, ["data: Required value: data is mandatory"], id="no data"),
    pytest.param({"data": [1]},
        ["data: Required value: data must be a valid JSON object"], id="data that are no object"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), REVISIONS)
def test_revisions_are_validated(change, expected):
    assert create_errors("apps/v1", "ControllerRevision", revision(**change)) == expected
