"""Validation of devices and device requests, with the messages of a real kube-apiserver 1.36."""

import pytest

from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.served_kinds import kinds_of

NODE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
OWN_NODE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
    "true in the ResourceSlice spec"
)
TAINT = {"key": "a", "effect": "NoSchedule"}
COUNTER = {"a": {"value": "1"}}
REQUEST = '{"name":"a","exactly":{"deviceClassName":"x","allocationMode":"ExactCount","count":1}}'
EXACT = {"deviceClassName": "x", "allocationMode": "ExactCount", "count": 1}


def errors_of(kind, spec, old=None):
    row = Resource(
        group="resource.k8s.io",
        version="v1",
        name=f"{kind.lower()}s",
        kind=kind,
        namespaced=kind == "ResourceClaim",
    )
    metadata = {"name": "a", "uid": "1", **({"namespace": "ns"} if row.namespaced else {})}
    new = {"metadata": metadata, "spec": spec}
    if old is None:
        return [*map(str, kind_rules.check_create(row, new))]
    return [*map(str, kind_rules.check_update(row, "", new, {"metadata": metadata, "spec": old}))]


def slice_of(**spec):
    pool = {"name": "p", "resourceSliceCount": 1}
    return {"driver": "d.example.com", "nodeName": "n", "pool": pool, **spec}


def device(name="a", **fields):
    return {"name": name, **fields}


def slice_with_policy(value, policy):
    capacity = {"c": {"value": value, "requestPolicy": policy}}
    return slice_of(devices=[device(allowMultipleAllocations=True, capacity=capacity)])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (slice_of(devices=[device()] * 129), ["spec.devices: Too many: 129: must have at most 128 items"]),
        (
            slice_of(devices=[device(f"a{number}", taints=[TAINT]) for number in range(65)]),
            ["spec.devices: Too many: 65: must have at most 64 items"],
        ),
        (slice_of(devices=[device(), device()]), ['spec.devices[1]: Duplicate value: "a"']),
        (
            slice_of(nodeName=""),
            [
                'spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string',
                f"spec: Required value: {NODE}",
            ],
        ),
        (
            slice_of(allNodes=False),
            ["spec.allNodes: Invalid value: false: must be either unset or set to true"],
        ),
        (
            {key: value for key, value in slice_of().items() if key != "nodeName"}
            | {
                "perDeviceNodeSelection": True,
                "devices": [device(), device("b", nodeName="x"), device("c", nodeName="x", allNodes=True)],
            },
            [
                f"spec.devices[0]: Required value: {OWN_NODE}",
                f'spec.devices[2]: Invalid value: "{{`nodeName`, `allNodes`}}": {OWN_NODE}',
            ],
        ),
        (
            slice_of(devices=[device(allNodes=False)]),
            [
                (
                    "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
                    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
                )
            ],
        ),
        (
            slice_of(sharedCounters=[{"name": "c", "counters": COUNTER}], devices=[device()]),
            ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
        ),
        (
            slice_of(sharedCounters=[{"name": "c", "counters": COUNTER}, {"name": "c", "counters": {}}]),
            [
                'spec.sharedCounters[1]: Duplicate value: {"name":"c"}',
                "spec.sharedCounters[1].counters: Required value",
            ],
        ),
        (
            slice_of(devices=[device(consumesCounters=[{}, {}, {}])]),
            ["spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items"],
        ),
        (
            slice_of(devices=[device(bindingConditions=["a", "a"], bindingFailureConditions=["a"])]),
            [
                'spec.devices[0].bindingConditions[1]: Duplicate value: "a"',
                (
                    'spec.devices[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not '
                    "overlap with bindingConditions"
                ),
            ],
        ),
        (
            slice_of(devices=[device(bindingConditions=["a"])]),
            [
                (
                    "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are "
                    "required to use bindingConditions"
                )
            ],
        ),
        (
            slice_of(devices=[device(capacity={"c": {"value": "1", "requestPolicy": {}}})]),
            [
                "spec.devices[0].capacity[c].requestPolicy: Forbidden: allowMultipleAllocations must be true",
            ],
        ),
    ],
)
def test_resource_slices_are_validated(spec, expected):
    assert errors_of("ResourceSlice", spec) == expected


POLICY = "spec.devices[0].capacity[c].requestPolicy"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            {"default": "11", "validValues": ["1"]},
            ['.validValues: Invalid value: "11": default value is not valid according to the requestPolicy'],
        ),
        (
            {"default": "2", "validValues": ["3", "2", "20", "2"]},
            [
                '.validValues[1]: Invalid value: "2": values must be sorted in ascending order',
                '.validValues[3]: Invalid value: "2": values must be sorted in ascending order',
                '.validValues[2]: Invalid value: "20": option is larger than capacity value: 10',
                '.validValues[3]: Duplicate value: "2"',
            ],
        ),
        ({"validRange": {"min": "2"}}, [".default: Required value: required when validRange is defined"]),
        (
            {"default": "2", "validRange": {"max": "2"}},
            [".validRange.min: Required value: required when validRange is defined"],
        ),
        (
            {"default": "1", "validRange": {"min": "2", "max": "20", "step": "4"}},
            [
                '.validRange.default: Invalid value: "1": default is less than min: 2',
                '.validRange.max: Invalid value: "20": max is larger than capacity value: 10',
                '.validRange.step: Invalid value: "1": value is not a multiple of a given step (4) from (2)',
                '.validRange.step: Invalid value: "20": value is not a multiple of a given step (4) from (2)',
            ],
        ),
        (
            {"default": "9", "validRange": {"min": "1", "max": "5", "step": "0"}},
            [
                '.validRange.default: Invalid value: "9": default is more than max: 5',
                '.validRange.step: Invalid value: "0": must be greater than zero',
            ],
        ),
        (
            {"default": "1", "validRange": {"min": "-1", "step": "10E"}},
            [
                '.validRange.step: Invalid value: "10E": one step 9999999999999999999 is larger than capacity value: 10',
                '.validRange.min: Invalid value: "-1": must be greater than or equal to 0',
                '.validRange.step: Invalid value: "10E": must not be larger than 9223372036854775807',
            ],
        ),
        (
            {"default": "1", "validRange": {"min": "1"}, "validValues": ["1"]},
            [
                (
                    ': Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at '
                    "the same time"
                )
            ],
        ),
    ],
)
def test_device_request_policies_are_validated(policy, expected):
    assert errors_of("ResourceSlice", slice_with_policy("10", policy)) == [POLICY + text for text in expected]


def test_unchanged_capacities_are_not_validated_again():
    old = slice_with_policy("10", {"default": "1", "validRange": {"min": "2"}})
    assert errors_of("ResourceSlice", old, old) == []
    new = slice_with_policy("11", {"default": "1", "validRange": {"min": "2"}})
    assert errors_of("ResourceSlice", new, old)


def test_unchanged_taints_are_not_validated_again():
    old = slice_of(devices=[device(taints=[{"key": "a", "effect": "Odd"}])])
    assert errors_of("ResourceSlice", old, old) == []
    moved = slice_of(devices=old["devices"], nodeName="m")
    assert errors_of("ResourceSlice", moved, old) == ['spec.nodeName: Invalid value: "m": field is immutable']


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (
            {"requests": [{"name": "A"}] * 33},
            ["spec.devices.requests: Too many: 33: must have at most 32 items"],
        ),
        (
            {"requests": [{"name": "a", "exactly": EXACT}] * 2},
            [f"spec.devices.requests[1]: Duplicate value: {REQUEST}"],
        ),
        (
            {
                "requests": [{"name": "a", "exactly": EXACT}],
                "constraints": [{"matchAttribute": "x/"}, {"distinctAttribute": "x"}],
            },
            [
                'spec.devices.constraints[0].matchAttribute: Invalid value: "": name must not be empty',
                (
                    'spec.devices.constraints[1].distinctAttribute: Invalid value: "x": a fully qualified name must be a '
                    "domain and a name separated by a slash"
                ),
            ],
        ),
        (
            {
                "requests": [{"name": "a", "exactly": EXACT}],
                "constraints": [{"matchAttribute": "d/a", "distinctAttribute": "x"}],
            },
            [
                (
                    'spec.devices.constraints[0].distinctAttribute: Invalid value: "x": a fully qualified name must be a '
                    "domain and a name separated by a slash"
                )
            ],
        ),
    ],
)
def test_resource_claims_are_validated(devices, expected):
    assert errors_of("ResourceClaim", {"devices": devices}) == expected


# --- declared rules, and the messages before 1.37

SHARED = slice_of(sharedCounters=[{"name": "c" * 64, "counters": {"A": {}}}, {"name": "c" * 64}])
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
COUNTERS = "spec.sharedCounters"


def older_errors_of(kind, spec, subresource="", old=None):
    kinds = kinds_of("1.36")
    row = next(each.resource for each in kinds.all if each.resource.kind == kind)
    metadata = {"name": "a", "uid": "1", "resourceVersion": "1"}
    metadata |= {"namespace": "ns"} if row.namespaced else {}
    if old is None:
        return [*map(str, kind_rules.check_create(row, {"metadata": metadata, "spec": spec}, kinds))]
    return [
        *map(
            str,
            kind_rules.check_update(
                row, subresource, {"metadata": metadata, **spec}, {"metadata": metadata, **old}, kinds
            ),
        )
    ]


def test_declared_rules_follow_others_and_count_bytes():
    long = f'Invalid value: "{"c" * 64}": must be no more than 63'
    label = f'{COUNTERS}[0].counters: Invalid value: "A": {LABEL}'
    assert errors_of("ResourceSlice", SHARED) == [
        f'{COUNTERS}[1]: Duplicate value: {{"name":"{"c" * 64}"}}',
        f"{COUNTERS}[0].name: {long} bytes",
        label,
        f"{COUNTERS}[1].name: {long} bytes",
        f"{COUNTERS}[1].counters: Required value",
    ]
    assert older_errors_of("ResourceSlice", SHARED) == [
        f"{COUNTERS}[0].name: {long} characters",
        label,
        f"{COUNTERS}[1].name: {long} characters",
        f"{COUNTERS}[1].counters: Required value",
        f'{COUNTERS}[1]: Duplicate value: "{"c" * 64}"',
    ]


ALLOCATION = "status.allocation.devices.results[0]"
RESULT = {
    "request": "a",
    "driver": "D/x",
    "pool": "p//",
    "device": "d",
    "shareID": "1",
    "tolerations": [{"key": "k"}],
}


def test_results_of_allocation_are_validated_by_minor():
    old = {"spec": {"devices": {"requests": [{"name": "a"}]}}}
    new = old | {"status": {"allocation": {"devices": {"results": [RESULT]}}}}
    row = Resource(group="resource.k8s.io", version="v1", name="resourceclaims", kind="ResourceClaim")
    metadata = {"metadata": {"name": "a", "namespace": "ns", "uid": "1"}}
    newest = [*map(str, kind_rules.check_update(row, "status", new | metadata, old | metadata))]
    assert [error.partition(" (e.g.")[0] for error in newest] == [
        (
            f'{ALLOCATION}.driver: Invalid value: "D/x": an RFC 1123 subdomain must consist of alphanumeric characters, '
            "'-' or '.', and must start and end with an alphanumeric character"
        ),
        f'{ALLOCATION}.pool: Invalid value: "p//": segment 1: must not be empty',
        f'{ALLOCATION}.pool: Invalid value: "p//": segment 2: must not be empty',
        f"{ALLOCATION}.tolerations[0].operator: Required value",
        f'{ALLOCATION}.shareID: Invalid value: "1": must be a lowercase UUID in 8-4-4-4-12 format',
    ]
    older = older_errors_of("ResourceClaim", new, "status", old)
    assert len(older) == 4
    assert older[-1].endswith("error validating uid: invalid UUID length: 1")


def test_change_of_claim_has_no_value_since_1_37():
    old = {"devices": {"requests": [{"name": "a", "exactly": EXACT}]}}
    new = {"devices": {"requests": []}}
    assert errors_of("ResourceClaim", new, old) == ["spec: Invalid value: null: field is immutable"]
    (older,) = older_errors_of("ResourceClaim", {"spec": new}, "", {"spec": old})
    assert older.startswith('spec: Invalid value: {"Devices":')


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", ["a name must be a domain-prefixed path, such as 'example.com/my-prop'"]),
        ("kubernetes.io/a", ['must not have "kubernetes.io/" domain']),
        ("requests.a.b/c", ['must not have "requests." prefix']),
    ],
)
def test_names_of_extended_resources_are_validated(name, expected):
    path = "spec.extendedResourceName"
    messages = [f'{path}: Invalid value: "{name}": {text}' for text in expected]
    assert errors_of("DeviceClass", {"extendedResourceName": name}) == messages
    assert older_errors_of("DeviceClass", {"extendedResourceName": name}) == [
        f'{path}: Invalid value: "{name}": must be a valid extended resource name'
    ]


def test_attributes_have_one_value():
    spec = slice_of(devices=[device(attributes={"a": {"int": 1, "bool": True}, "b": {}})])
    members = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
    path = "spec.devices[0].attributes"
    assert errors_of("ResourceSlice", spec) == [
        f'{path}[a]: Invalid value: "{{int, bool}}": must specify exactly one of: {members}',
        f'{path}[b]: Invalid value: "": must specify one of: {members}',
    ]
