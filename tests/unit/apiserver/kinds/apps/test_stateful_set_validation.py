"""Validation of StatefulSets and DaemonSets."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors
from tests.support.valid_workloads import DAEMON_SET, STATEFUL_SET

CLAIM = {
    "metadata": {"name": "c"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(fields):
    return changed(STATEFUL_SET, {f"spec.{path}": value for path, value in fields.items()})


def daemon_set(fields):
    return changed(DAEMON_SET, {f"spec.{path}": value for path, value in fields.items()})


def rolling(**fields):
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": fields}}


def status_errors(kind, old, new):
    base = {"StatefulSet": STATEFUL_SET, "DaemonSet": DAEMON_SET}[kind]
    return update_errors("apps/v1", kind, {**base, "status": old}, {**base, "status": new}, "status")


STATEFUL_SETS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"podManagementPolicy": ABSENT},
        ["spec.podManagementPolicy: Required value"], id="no management policy"),
    pytest.param({"podManagementPolicy": "Serial"},
        ["spec.podManagementPolicy: Invalid value: \"Serial\": must be 'OrderedReady' or 'Parallel'"],
        id="unknown management policy"),
    pytest.param({"updateStrategy": ABSENT}, ["spec.updateStrategy: Required value"], id="no strategy"),
    pytest.param({"updateStrategy": {"type": "Recreate"}},
        [('spec.updateStrategy: Invalid value: {"Type":"Recreate","RollingUpdate":null}: must be '
          "'RollingUpdate' or 'OnDelete'")], id="unknown strategy"),
    pytest.param({"updateStrategy": {"type": "OnDelete"}}, [], id="deletion by the user"),
    pytest.param({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
        [('spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only '
          "allowed for updateStrategy 'RollingUpdate'")], id="deletion by the user with parameters"),
    pytest.param({"updateStrategy": {"type": "RollingUpdate"}}, [], id="update without parameters"),
    pytest.param(rolling(partition=-1),
        ["spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0"],
        id="negative partition"),
    pytest.param(rolling(partition=0, maxUnavailable="100%"), [], id="update of all pods"),
    pytest.param(rolling(partition=0, maxUnavailable="101%"),
        [('spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than '
          "100%")], id="update of more than all pods"),
    pytest.param(rolling(partition=0, maxUnavailable=0),
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0"], id="update of no pods"),
    pytest.param(rolling(partition=0, maxUnavailable=-1),
        [("spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or equal "
          "to 0")], id="update of a negative number"),
    pytest.param(rolling(partition=0, maxUnavailable="a"),
        [('spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "a": a valid percent string must be '
          "a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
          "'[0-9]+%')"),
         'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "a": cannot be 0'],
        id="update of no percentage"),
    pytest.param({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"}},
        [], id="retention"),
    pytest.param({"persistentVolumeClaimRetentionPolicy": {}},
        [('spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "": supported values: '
          '"Retain", "Delete"'),
         ('spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "": supported values: '
          '"Retain", "Delete"')], id="empty retention"),
    pytest.param({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Keep", "whenScaled": "Delete"}},
        [('spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: '
          '"Retain", "Delete"')], id="unknown retention"),
    pytest.param({"replicas": -1, "minReadySeconds": -1, "ordinals": {"start": -1}},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0",
         "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
         "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"], id="negative numbers"),
    pytest.param({"serviceName": "A"},
        [('spec.serviceName: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="invalid name of the Service"),
    pytest.param({"serviceName": ""}, [], id="no name of the Service"),
    pytest.param({"selector": ABSENT},
        ["spec.selector: Required value",
         ('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="no selector"),
    pytest.param({"selector": {}},
        ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"], id="empty selector"),
    pytest.param({"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}},
        ['spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
         'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Is"}]}'], id="invalid selector"),
    pytest.param({"selector": {"matchLabels": {"app": "b"}}},
        [('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="selector of other labels"),
    pytest.param({"template.spec.restartPolicy": "Never", "template.spec.activeDeadlineSeconds": 1},
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
         ("spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not "
          "Supported")], id="pods that end"),
    pytest.param({"template.spec.hostname": "A", "template.spec.subdomain": "B"},
        [], id="invalid host name in the template"),
    pytest.param({"volumeClaimTemplates": [CLAIM], "template.spec.containers.0.volumeMounts": [{"name": "c", "mountPath": "/c"}]},
        [], id="claim"),
    pytest.param({"volumeClaimTemplates": [{**CLAIM, "metadata": {"name": "empty"}}], "template.spec.containers.0.volumeDevices": [{"name": "empty", "devicePath": "/c"}]},
        [], id="claim in place of a volume"),
    pytest.param({"volumeClaimTemplates": [{"metadata": {"name": "c"}}]},
        ["spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
         "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"], id="claim without spec"),
    pytest.param({"volumeClaimTemplates": [{**CLAIM, "metadata": {}}]},
        ["spec.template.spec.volumes[0].persistentVolumeClaim.claimName: Required value",
         "spec.template.spec.volumes[0].name: Required value"], id="claim without name"),
    pytest.param({"template.metadata.labels": {"app": "a", "b c": "d"}},
        [('spec.template.labels: Invalid value: "b c": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid labels of the template"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), STATEFUL_SETS)
def test_stateful_sets_are_validated(change, expected):
    assert create_errors("apps/v1", "StatefulSet", stateful_set(change)) == expected


CHANGED_CLAIMS = (
    'spec.volumeClaimTemplates: Invalid value: [{"name":"c","Spec":{"AccessModes":["ReadWriteOnce"],"Selector":null,'
    '"Resources":{"Limits":null,"Requests":{"storage":"1Gi"}},"VolumeName":"","StorageClassName":null,'
    '"VolumeMode":null,"DataSource":null,"DataSourceRef":null,"VolumeAttributesClassName":null},"Status":{"Phase":"",'
    '"AccessModes":null,"Capacity":null,"Conditions":null,"AllocatedResources":null,'
    '"AllocatedResourceStatuses":null,"CurrentVolumeAttributesClassName":null,"ModifyVolumeStatus":null,"HealthStatus":null}}]: '
    "field is immutable"
)

STATEFUL_SET_UPDATES = [
    pytest.param({}, {"replicas": 2, "ordinals": {"start": 1}, "template.spec.containers.0.image": "b", "updateStrategy": {"type": "OnDelete"}, "revisionHistoryLimit": 1, "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}, "minReadySeconds": 1},
        [], id="fields that may change"),
    pytest.param({}, {"serviceName": "b"},
        ['spec.serviceName: Invalid value: "b": field is immutable'], id="name of the Service"),
    pytest.param({}, {"podManagementPolicy": "Parallel"},
        ['spec.podManagementPolicy: Invalid value: "Parallel": field is immutable'], id="management policy"),
    pytest.param({}, {"selector": {"matchLabels": {"app": "b"}}, "template.metadata.labels": {"app": "b"}},
        ['spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'], id="selector"),
    pytest.param({}, {"volumeClaimTemplates": [CLAIM]},
        [CHANGED_CLAIMS], id="claims"),
    pytest.param({}, {"template.spec.containers.0.image": ""},
        ["spec.template.spec.containers[0].image: Required value"], id="pod becomes invalid"),
    pytest.param({"template.spec.containers.0.image": ""}, {"template.spec.containers.0.image": "", "replicas": 2},
        [], id="pod stays invalid"),
    pytest.param({"template.spec.containers.0.image": ""}, {"template.spec.containers.0.image": "", "template.metadata.labels": {"app": "a", "b c": "d"}},
        [('spec.template.labels: Invalid value: "b c": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="labels of an invalid pod"),
    pytest.param({"serviceName": "A"}, {"serviceName": "A", "replicas": 2},
        [], id="name of the Service stays invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), STATEFUL_SET_UPDATES)
def test_changes_of_stateful_sets_are_validated(old, new, expected):
    assert update_errors("apps/v1", "StatefulSet", stateful_set(old), stateful_set(new)) == expected


STATEFUL_SET_STATUS = [
    pytest.param({}, {"replicas": 2, "readyReplicas": 2, "currentReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        [], id="counts"),
    pytest.param({}, {"replicas": -1, "readyReplicas": -2, "currentReplicas": -2, "updatedReplicas": -2, "availableReplicas": -3, "observedGeneration": -1, "collisionCount": -1},
        ["status.replicas: Invalid value: -1: must be greater than or equal to 0",
         "status.readyReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.currentReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.updatedReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.availableReplicas: Invalid value: -3: must be greater than or equal to 0",
         "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
         "status.collisionCount: Invalid value: -1: must be greater than or equal to 0"], id="negative counts"),
    pytest.param({}, {"replicas": 1, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2, "availableReplicas": 3},
        ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 3: cannot be greater than status.readyReplicas"], id="more than all"),
    pytest.param({"collisionCount": 2}, {"collisionCount": 1},
        ["status.collisionCount: Invalid value: 1: cannot be decremented"], id="fewer collisions"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), STATEFUL_SET_STATUS)
def test_status_of_stateful_sets_is_validated(old, new, expected):
    assert status_errors("StatefulSet", old, new) == expected


DAEMON_SETS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"selector": ABSENT},
        [('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="no selector"),
    pytest.param({"selector": {}},
        ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"], id="empty selector"),
    pytest.param({"selector": {"matchLabels": {"app": "b"}}},
        [('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="selector of other labels"),
    pytest.param({"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}},
        ['spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator'],
        id="invalid selector"),
    pytest.param({"selector": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b c"]}]}},
        [('spec.selector.matchExpressions[0].values[1]: Invalid value: "b c": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid value of the selector"),
    pytest.param({"template.spec.restartPolicy": "Never", "template.spec.activeDeadlineSeconds": 1},
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
         ("spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not "
          "Supported")], id="pods that end"),
    pytest.param({"minReadySeconds": -1, "revisionHistoryLimit": -1},
        ["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
         "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"], id="negative numbers"),
    pytest.param({"updateStrategy": ABSENT},
        [('spec.updateStrategy: Unsupported value: {"Type":"","RollingUpdate":null}: supported values: '
          '"RollingUpdate", "OnDelete"')], id="no strategy"),
    pytest.param({"updateStrategy": {"type": "Recreate"}},
        [('spec.updateStrategy: Unsupported value: {"Type":"Recreate","RollingUpdate":null}: supported values: '
          '"RollingUpdate", "OnDelete"')], id="unknown strategy"),
    pytest.param({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": -1}}},
        [], id="deletion by the user with parameters"),
    pytest.param({"updateStrategy": {"type": "RollingUpdate"}},
        ["spec.updateStrategy.rollingUpdate: Required value"], id="update without parameters"),
    pytest.param(rolling(maxUnavailable=0, maxSurge="100%"), [], id="surge"),
    pytest.param(rolling(maxUnavailable="0%", maxSurge=0),
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
        id="neither surge nor unavailable pods"),
    pytest.param(rolling(maxUnavailable=1, maxSurge=1),
        [("spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is "
          "non-zero")], id="surge and unavailable pods"),
    pytest.param(rolling(maxUnavailable="101%", maxSurge="101%"),
        [('spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than '
          "100%"),
         'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "101%": must not be greater than 100%',
         ('spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "101%": may not be set when '
          "maxUnavailable is non-zero")], id="update of more than all pods"),
    pytest.param(rolling(maxUnavailable=-1, maxSurge=0),
        [("spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or equal "
          "to 0")], id="update of negative numbers"),
    pytest.param(rolling(maxUnavailable="a", maxSurge=0),
        [('spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "a": a valid percent string must be '
          "a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
          "'[0-9]+%')"),
         "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
        id="update of no percentage"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), DAEMON_SETS)
def test_daemon_sets_are_validated(change, expected):
    assert create_errors("apps/v1", "DaemonSet", daemon_set(change)) == expected


DAEMON_SET_UPDATES = [
    pytest.param({}, {"template.spec.containers.0.image": "b"}, [], id="image"),
    pytest.param({}, {"selector": {"matchLabels": {"app": "b"}}, "template.metadata.labels": {"app": "b"}},
        ['spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'], id="selector"),
    pytest.param({"selector": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b c"]}]}}, {"selector": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b c"]}]}, "minReadySeconds": 1},
        [], id="value of the selector stays invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), DAEMON_SET_UPDATES)
def test_changes_of_daemon_sets_are_validated(old, new, expected):
    assert update_errors("apps/v1", "DaemonSet", daemon_set(old), daemon_set(new)) == expected


DAEMON_SET_STATUS = [
    pytest.param({}, {"desiredNumberScheduled": 1, "numberReady": 2}, [], id="more ready than desired"),
    pytest.param({}, {"currentNumberScheduled": -1, "numberMisscheduled": -1, "desiredNumberScheduled": -1, "numberReady": -1, "observedGeneration": -1, "updatedNumberScheduled": -1, "numberAvailable": -1, "numberUnavailable": -1, "collisionCount": -1},
        ["status.currentNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
         "status.numberMisscheduled: Invalid value: -1: must be greater than or equal to 0",
         "status.desiredNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
         "status.numberReady: Invalid value: -1: must be greater than or equal to 0",
         "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
         "status.updatedNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
         "status.numberAvailable: Invalid value: -1: must be greater than or equal to 0",
         "status.numberUnavailable: Invalid value: -1: must be greater than or equal to 0",
         "status.collisionCount: Invalid value: -1: must be greater than or equal to 0"], id="negative counts"),
    pytest.param({"collisionCount": 2}, {"collisionCount": 1},
        ["status.collisionCount: Invalid value: 1: cannot be decremented"], id="fewer collisions"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), DAEMON_SET_STATUS)
def test_status_of_daemon_sets_is_validated(old, new, expected):
    assert status_errors("DaemonSet", old, new) == expected
