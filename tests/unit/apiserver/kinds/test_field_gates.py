"""Fields of gates that are off by default: a server keeps them if their gate is on, and validates them."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.groups import PODS
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.core.pod.context import STRICT
from mockube.apiserver.kinds.core.pod.spec import check_pod_spec
from mockube.apiserver.kinds.field_gates import FIELD_GATES, RULE_GATES
from mockube.apiserver.kinds.served_kinds import kinds_of

CONTAINER = {
    "name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
}  # fmt: skip
SPEC = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
HTTP = {"path": "/", "port": 80, "scheme": "HTTP"}
PROBE = {"livenessProbe": {"successThreshold": 1}}


def spec_with(field):
    """Return a spec that uses a gate's field with a value."""
    name, value = field
    volume, container, other = {}, {}, {}
    match name:
        case "mode":
            volume = {"emptyDir": {"mode": value}}
        case "defaultUser":
            volume = {"configMap": {"name": "m", "defaultUser": value}}
        case "user":
            sources = [{"serviceAccountToken": {"path": "t", "expirationSeconds": 600, "user": value}}]
            volume = {"projected": {"sources": sources}}
        case "protocol":
            container = {"livenessProbe": PROBE["livenessProbe"] | {"httpGet": HTTP | value}}
        case "grpc":
            container = {"livenessProbe": PROBE["livenessProbe"] | {"grpc": {"port": 80, "mode": value}}}
        case "bindMountOptions":
            volume = {"emptyDir": {}}
            container = {"volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": value}]}
        case _:
            other = {name: value}
    volumes = {"volumes": [{"name": "v"} | volume]} if volume else {}
    return SPEC | {"containers": [CONTAINER | container]} | volumes | other


FIELDS = {
    "AtomicWriteVolumeUserFields": ("defaultUser", 1),
    "EmptyDirVolumeMode": ("mode", 0o1777),
    "EvictionRequestAPI": ("evictionResponders", [{"name": "a.io/b", "priority": 10_000}]),
    "GRPCContainerProbeTLS": ("grpc", "TLS"),
    "H2CContainerProbe": ("protocol", {"protocol": "HTTP2"}),
    "VolumeBindMountOptions": ("bindMountOptions", ["noexec"]),
}


def dropped(spec, gates):
    pod = {"spec": spec}
    kinds_of("1.37", gates=gates).strategies[PODS].disabled.drop(pod, None)
    return pod["spec"]


@pytest.mark.parametrize("gate", sorted(FIELD_GATES))
def test_field_is_kept_only_with_its_gate(gate):
    on = FeatureGates("1.37", [(gate, True)])
    assert dropped(spec_with(FIELDS[gate]), on) == spec_with(FIELDS[gate])
    assert dropped(spec_with(FIELDS[gate]), FeatureGates("1.37")) != spec_with(FIELDS[gate])


def test_gates_that_kinds_name_are_those_that_a_server_implements():
    strategies = [kind.strategy for kind in NEWEST.all if kind.strategy]
    of_fields = {gate.name for strategy in strategies for gate in strategy.disabled.gates if gate.name}
    of_parts = {name for kind in NEWEST.all for name in kind.by_gate}
    assert (of_fields, of_parts - FIELD_GATES) == (FIELD_GATES, RULE_GATES)


def test_kinds_without_enabled_gates_are_the_same():
    assert kinds_of("1.37", gates=FeatureGates("1.37")) is kinds_of("1.37")


def test_http_requests_have_a_protocol_only_with_its_gate():
    on = kinds_of("1.37", gates=FeatureGates("1.37", [("H2CContainerProbe", True)]))
    off = kinds_of("1.37")
    names = [kind.resource.name for kind in on.all]
    with_protocol, without = (kinds.all[names.index("pods")].defaults for kinds in (on, off))
    pod = {"spec": spec_with(("protocol", {}))}
    for container in pod["spec"]["containers"]:
        container["resources"] = {}
    for defaults, expected in ((without, None), (with_protocol, "HTTP1")):
        for step in defaults["io.k8s.api.core.v1.Pod"]:
            step(pod)
        assert pod["spec"]["containers"][0]["livenessProbe"]["httpGet"].get("protocol") == expected


ANY_USER = "must be between 0 and 2147483647, inclusive"
RESPONDER = {"name": "a.io/b", "priority": 10_000}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        *((field, []) for field in FIELDS.values()),
        (
            ("mode", 0o2000),
            ["volumes[0].emptyDir.mode: Invalid value: 1024: must be a number between 0 and 01777 (octal), both inclusive"],
        ),
        (("defaultUser", -1), [f"volumes[0].configMap.defaultUser: Invalid value: -1: {ANY_USER}"]),
        (
            ("user", 2**31),
            [f"volumes[0].projected.sources[0].serviceAccountToken.user: Invalid value: 2147483648: {ANY_USER}"],
        ),
        (
            ("grpc", "Mutual"),
            ['containers[0].livenessProbe.grpc.mode: Unsupported value: "Mutual": supported values: "Plaintext", "TLS"'],
        ),
        (
            ("protocol", {"protocol": "HTTP3"}),
            ['containers[0].livenessProbe.httpGet.protocol: Unsupported value: "HTTP3": supported values: "HTTP1", "HTTP2"'],
        ),
        (
            ("protocol", {"protocol": "HTTP2", "scheme": "HTTPS"}),
            ['containers[0].livenessProbe.httpGet.protocol: Invalid value: "HTTP2": is only supported with HTTP (H2C)'],
        ),
        (
            ("protocol", {"protocol": "HTTP2", "host": "a"}),
            ['containers[0].livenessProbe.httpGet.host: Invalid value: "a": must be empty when `protocol` is "HTTP2"'],
        ),
        (
            ("bindMountOptions", ["sync", "noexec", "noexec"]),
            [
                'containers[0].volumeMounts[0].bindMountOptions[0]: Unsupported value: "sync": supported values: "nodev", "noexec", "nosuid"',
                'containers[0].volumeMounts[0].bindMountOptions[2]: Duplicate value: "noexec"',
            ],
        ),
        (
            ("evictionResponders", [{}]),
            ["evictionResponders[0].name: Required value", "evictionResponders[0].priority: Required value"],
        ),
        (
            ("evictionResponders", [{"name": "b", "priority": 999}]),
            [
                "evictionResponders[0].name: Invalid value: \"b\": must include a prefix (e.g. 'example.com/key')",
                "evictionResponders[0].priority: Invalid value: 999: priorities 0-999 are reserved for responders with *.k8s.io suffix",
            ],
        ),
        (
            ("evictionResponders", [{"name": "a.k8s.io/b", "priority": 100_001}]),
            [
                'evictionResponders[0].name: Invalid value: "a.k8s.io/b": domain names *.k8s.io, *.kubernetes.io are reserved',
                "evictionResponders[0].priority: Invalid value: 100001: must be less than or equal to 100000",
            ],
        ),
        (
            ("evictionResponders", [RESPONDER, RESPONDER]),
            ['evictionResponders[1]: Duplicate value: {"name":"a.io/b","priority":10000}'],
        ),
        (("evictionResponders", [RESPONDER] * 11), ["evictionResponders: Too many: 11: must have at most 10 items"]),
    ],
)  # fmt: skip
def test_gated_fields_are_validated(field, expected):
    assert [str(error) for error in check_pod_spec(spec_with(field), {"name": "p"}, ROOT, STRICT)] == expected
