"""Validation of Nodes and ReplicationControllers."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors
from tests.support.valid_workloads import LABELS, METADATA, TEMPLATE

TAINT = {"key": "a", "effect": "NoSchedule"}
CONTROLLER = {"metadata": METADATA, "spec": {"replicas": 1, "selector": LABELS, "template": TEMPLATE}}
LONG = {"declaredFeatures": ["A" * 253]}


def node(spec, status=None):
    return {"metadata": {"name": "n"}, "spec": spec, "status": status or {}}


def spec_errors(spec):
    return create_errors("v1", "Node", node(spec))


def status_errors(status):
    return create_errors("v1", "Node", node({}, status))


def controller(fields):
    return changed(CONTROLLER, {f"spec.{path}": value for path, value in fields.items()})


def controller_status_errors(status):
    return update_errors(
        "v1", "ReplicationController", CONTROLLER, {**CONTROLLER, "status": status}, "status"
    )


TAINTS = [
    pytest.param([{**TAINT, "value": "b"}], [], id="taint"),
    pytest.param([{}],
        ['metadata.taints[0].key: Invalid value: "": name part must be non-empty',
         ("metadata.taints[0].key: Invalid value: \"\": name part must consist of alphanumeric characters, '-', "
          "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         "metadata.taints[0].effect: Required value"], id="empty taint"),
    pytest.param([{**TAINT, "key": "a b"}],
        [('metadata.taints[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid key"),
    pytest.param([{**TAINT, "value": "b c"}],
        [('metadata.taints[0].value: Invalid value: "b c": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid value"),
    pytest.param([{**TAINT, "value": "b " * 32}],
        [('metadata.taints[0].value: Invalid value: "b b b b b b b b b b b b b b b b b b b b b b b b b b b b b '
          'b b b ": must be no more than 63 bytes;a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="long and invalid value"),
    pytest.param([{**TAINT, "effect": "Evict"}],
        [('metadata.taints[0].effect: Unsupported value: "Evict": supported values: "NoSchedule", '
          '"PreferNoSchedule", "NoExecute"')], id="unknown effect"),
    pytest.param([TAINT, {**TAINT, "effect": "NoExecute"}], [], id="same key with two effects"),
    pytest.param([TAINT, {**TAINT, "value": "b"}],
        [('metadata.taints[1]: Duplicate value: {"Key":"a","Value":"b","Effect":"NoSchedule","TimeAdded":null}: '
          "taints must be unique by key and effect pair")], id="same key and effect"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), TAINTS)
def test_taints_are_validated(change, expected):
    assert spec_errors({"taints": change}) == expected


CIDRS = [
    pytest.param(["10.0.0.0/24"], [], id="network"),
    pytest.param(["10.0.0.0/24", "fd00::/64"], [], id="networks of two families"),
    pytest.param(["10.0.0.0/24", "10.0.1.0/24"],
        [('spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for '
          "each IP family")], id="networks of one family"),
    pytest.param(["10.0.0.0/24", "fd00::/64", "10.0.1.0/24"],
        [('spec.podCIDRs: Invalid value: ["10.0.0.0/24","fd00::/64","10.0.1.0/24"]: may specify no more than '
          "one CIDR for each IP family")], id="three networks"),
    pytest.param(["a"],
        ['spec.podCIDRs[0]: Invalid value: "a": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
        id="invalid network"),
    pytest.param(["10.0.0.0/24", "a"],
        ['spec.podCIDRs[1]: Invalid value: "a": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
         ("spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid "
          "CIDR[1]: <nil> (invalid CIDR address: a)"),
         ('spec.podCIDRs: Invalid value: ["10.0.0.0/24","a"]: may specify no more than one CIDR for each IP '
          "family")], id="invalid second network"),
    pytest.param(["10.0.0.1/24"],
        ['spec.podCIDRs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length'],
        id="sloppy network"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CIDRS)
def test_pod_networks_are_validated(change, expected):
    assert spec_errors({"podCIDRs": change}) == expected


STATUSES = [
    pytest.param({"capacity": {"cpu": "1", "example.com/a": "1"}, "allocatable": {"cpu": "500m"}}, [], id="amounts"),
    pytest.param({"capacity": {"cpu": "-1"}, "allocatable": {"memory": "-1"}},
        ['status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
         'status.allocatable.memory: Invalid value: "-1": must be greater than or equal to 0'], id="negative amounts"),
    pytest.param({"capacity": {"example.com/a": "500m"}},
        ['status.capacity.example.com/a: Invalid value: "500m": must be an integer'], id="part of an extended resource"),
    pytest.param({"declaredFeatures": ["A", "A/b", "Bc1"]}, [], id="features"),
    pytest.param({"declaredFeatures": ["a"]},
        [('status.declaredFeatures[0]: Invalid value: "a": invalid feature name "a": must start with an '
          "UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
          "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes")], id="feature in lower case"),
    pytest.param({"declaredFeatures": ["A", "A"]},
        ['status.declaredFeatures[1]: Duplicate value: "A"'], id="feature twice"),
    pytest.param({"declaredFeatures": ["B", "A"]},
        ['status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically'],
        id="features that are not sorted"),
    pytest.param(LONG, [], id="feature of 253 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), STATUSES)
def test_status_of_new_nodes_is_validated(change, expected):
    assert status_errors(change) == expected


CHANGES = [
    pytest.param(({},), ({},), [], id="nothing"),
    pytest.param(({},), ({"podCIDRs": ["10.0.0.0/24"], "providerID": "p"},), [], id="networks are set"),
    pytest.param(({"podCIDRs": ["10.0.0.0/24"]},), ({"podCIDRs": ["10.0.1.0/24"]},),
        ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'], id="networks change"),
    pytest.param(({"podCIDRs": ["10.0.0.0/24"]},), ({},),
        ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
        id="networks are removed"),
    pytest.param(({"providerID": "p"},), ({"providerID": "q"},),
        ["spec.providerID: Invalid value: null: field cannot be modified once set"], id="provider changes"),
    pytest.param(({"providerID": "p"},), ({},),
        ["spec.providerID: Invalid value: null: field cannot be cleared once set"], id="provider removed"),
    pytest.param(({},), ({"externalID": "e"},),
        ["spec.externalID: Forbidden: may not be updated"], id="external name"),
    pytest.param(({},), ({"unschedulable": True, "taints": [TAINT]},), [], id="unschedulable with taint"),
    pytest.param(({},), ({"taints": [TAINT, TAINT]},),
        [('metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: '
          "taints must be unique by key and effect pair")], id="taint twice"),
    pytest.param(({},), ({}, {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}] * 2}),
        ['status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}'], id="address twice"),
    pytest.param(({},), ({}, {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "10.0.0.1"}]}),
        [], id="address of two types"),
    pytest.param(({},), ({}, {"capacity": {"cpu": "-1"}}),
        ['status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0'], id="negative amount"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_nodes_are_validated(old, new, expected):
    assert update_errors("v1", "Node", node(*old), node(*new)) == expected


CONTROLLERS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"replicas": ABSENT}, ["spec.replicas: Required value"], id="no replicas"),
    pytest.param({"replicas": -1, "minReadySeconds": -1},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0",
         "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"], id="negative numbers"),
    pytest.param({"selector": {}}, ["spec.selector: Required value"], id="no selector"),
    pytest.param({"selector": {"app": "b"}},
        [('spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
          "`labels`")], id="selector of other labels"),
    pytest.param({"template": ABSENT}, ["spec.template: Required value"], id="no template"),
    pytest.param({"template.spec.restartPolicy": "Never", "template.spec.activeDeadlineSeconds": 1},
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
         ("spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController "
          "is not Supported")], id="pods that end"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CONTROLLERS)
def test_replication_controllers_are_validated(change, expected):
    assert create_errors("v1", "ReplicationController", controller(change)) == expected


CONTROLLER_STATUSES = [
    pytest.param({"replicas": -1, "fullyLabeledReplicas": -2, "readyReplicas": -2, "availableReplicas": -2, "observedGeneration": -1},
        ["status.replicas: Invalid value: -1: must be greater than or equal to 0",
         "status.fullyLabeledReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.readyReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.availableReplicas: Invalid value: -2: must be greater than or equal to 0",
         "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0"], id="negative counts"),
    pytest.param({"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 3},
        ["status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas"], id="more than all"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CONTROLLER_STATUSES)
def test_status_of_replication_controllers_is_validated(change, expected):
    assert controller_status_errors(change) == expected


def test_feature_has_at_most_253_characters():
    name = "A" * 254
    (error,) = status_errors({"declaredFeatures": [name]})
    assert error.endswith(f': invalid feature name "{name}": must be no more than 253 characters')
