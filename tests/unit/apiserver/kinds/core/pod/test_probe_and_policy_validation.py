"""Validation of containers: probes, hooks, restart rules, resize policies, and fields of init and ephemeral containers."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors
from tests.support.valid_pods import CONTAINER, POD

TCP = {"tcpSocket": {"port": 80}}
EXEC = {"exec": {"command": ["a"]}}
RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}

RESIZED = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
RESTARTED = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
PORT = {"containerPort": 1, "hostPort": 1, "protocol": "TCP"}


def errors_of(change):
    """Return the errors of a pod whose container has other fields, without the path of the container."""
    texts = create_errors(
        "v1", "Pod", changed(POD, {f"spec.containers.0.{path}": value for path, value in change.items()})
    )
    return [text.removeprefix("spec.containers[0].") for text in texts]


def pod_errors(change):
    return create_errors("v1", "Pod", changed(POD, {f"spec.{path}": value for path, value in change.items()}))


def init(**fields):
    return {"initContainers": [{**CONTAINER, "name": "i", **fields}]}


def rules(restart_rules):
    return {"restartPolicy": "Never", "restartPolicyRules": restart_rules}


def get(**fields):
    return {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP", **fields}}


PROBES = [
    pytest.param(EXEC, [], id="command"),
    pytest.param({"exec": {"command": []}}, ["livenessProbe.exec.command: Required value"], id="empty command"),
    pytest.param({"exec": {}}, ["livenessProbe.exec.command: Required value"], id="absent command"),
    pytest.param(TCP, [], id="port of a socket"),
    pytest.param({"tcpSocket": {"port": 0}},
        ["livenessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive"], id="port zero"),
    pytest.param({"tcpSocket": {"port": 65536}},
        ["livenessProbe.tcpSocket.port: Invalid value: 65536: must be between 1 and 65535, inclusive"],
        id="port too high"),
    pytest.param({"tcpSocket": {"port": "http"}}, [], id="port by name"),
    pytest.param({"tcpSocket": {"port": ""}},
        [('livenessProbe.tcpSocket.port: Invalid value: "": must contain only alpha-numeric characters (a-z, '
          "0-9), and hyphens (-)"),
         'livenessProbe.tcpSocket.port: Invalid value: "": must contain at least one letter (a-z)'],
        id="port by an empty name"),
    pytest.param({"tcpSocket": {"port": "80"}},
        ['livenessProbe.tcpSocket.port: Invalid value: "80": must contain at least one letter (a-z)'],
        id="port by a number as text"),
    pytest.param({"grpc": {"port": 80}}, [], id="gRPC"),
    pytest.param({"grpc": {"port": 0}},
        ["livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive"], id="gRPC with port zero"),
    pytest.param(get(), [], id="HTTP"),
    pytest.param(get(path=""), ["livenessProbe.httpGet.path: Required value"], id="HTTP without path"),
    pytest.param(get(port=0),
        ["livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        id="HTTP with port zero"),
    pytest.param(get(scheme="FTP"),
        ['livenessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"'],
        id="HTTP with unknown scheme"),
    pytest.param(get(httpHeaders=[{"name": "X-A", "value": "b"}]), [], id="HTTP with header"),
    pytest.param(get(httpHeaders=[{"name": "X A"}]),
        [('livenessProbe.httpGet.httpHeaders: Invalid value: "X A": a valid HTTP header must consist of '
          "alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')")],
        id="HTTP with invalid header"),
    pytest.param(get(httpHeaders=[{"value": "b"}]),
        [('livenessProbe.httpGet.httpHeaders: Invalid value: "": a valid HTTP header must consist of '
          "alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')")],
        id="HTTP with empty header"),
    pytest.param({}, ["livenessProbe: Required value: must specify a handler type"], id="no handler"),
    pytest.param({**TCP, **EXEC},
        ["livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"], id="two handlers"),
    pytest.param({**TCP, "initialDelaySeconds": -1},
        ["livenessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0"],
        id="negative delay"),
    pytest.param({**TCP, "timeoutSeconds": -1},
        ["livenessProbe.timeoutSeconds: Invalid value: -1: must be greater than or equal to 0"], id="negative timeout"),
    pytest.param({**TCP, "periodSeconds": -1},
        ["livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"], id="negative period"),
    pytest.param({**TCP, "failureThreshold": -1},
        ["livenessProbe.failureThreshold: Invalid value: -1: must be greater than or equal to 0"],
        id="negative threshold of failures"),
    pytest.param({**TCP, "successThreshold": 0},
        ["livenessProbe.successThreshold: Invalid value: 0: must be 1"], id="threshold of successes zero"),
    pytest.param({**TCP, "successThreshold": 2},
        ["livenessProbe.successThreshold: Invalid value: 2: must be 1"], id="threshold of successes two"),
    pytest.param({**TCP, "terminationGracePeriodSeconds": 1}, [], id="grace period of one second"),
    pytest.param({**TCP, "terminationGracePeriodSeconds": 0},
        ["livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"],
        id="grace period zero"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PROBES)
def test_probes_are_validated(change, expected):
    assert errors_of({"livenessProbe": {"successThreshold": 1, **change}}) == expected


OTHER_PROBES = [
    pytest.param({"readinessProbe": {**TCP, "successThreshold": 2}}, [], id="readiness needs two successes"),
    pytest.param({"readinessProbe": {**TCP, "terminationGracePeriodSeconds": 1}},
        ["readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes"],
        id="readiness ends nothing"),
    pytest.param({"readinessProbe": {**TCP, "successThreshold": -1}},
        ["readinessProbe.successThreshold: Invalid value: -1: must be greater than or equal to 0"],
        id="readiness with negative successes"),
    pytest.param({"startupProbe": {**TCP, "successThreshold": 2}},
        ["startupProbe.successThreshold: Invalid value: 2: must be 1"], id="start needs two successes"),
    pytest.param({"startupProbe": {**TCP, "successThreshold": 1, "terminationGracePeriodSeconds": 5}},
        [], id="start with grace period"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), OTHER_PROBES)
def test_each_probe_has_rules_of_its_own(change, expected):
    assert errors_of(change) == expected


HOOKS = [
    pytest.param({}, [], id="no hooks"),
    pytest.param({"postStart": EXEC, "preStop": get()}, [], id="both hooks"),
    pytest.param({"postStart": {}},
        ["lifecycle.postStart: Required value: must specify a handler type"], id="hook without handler"),
    pytest.param({"preStop": {**EXEC, "sleep": {"seconds": 1}}},
        ["lifecycle.preStop.sleep: Forbidden: may not specify more than 1 handler type"], id="hook with two handlers"),
    pytest.param({"preStop": {"grpc": {"port": 80}}},
        ["lifecycle.preStop: Required value: must specify a handler type"], id="hook over gRPC"),
    pytest.param({"preStop": {"sleep": {"seconds": 0}}}, [], id="sleep zero"),
    pytest.param({"preStop": {"sleep": {"seconds": 30}}}, [], id="sleep as long as the grace period"),
    pytest.param({"preStop": {"sleep": {"seconds": 31}}},
        [("lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
          "terminationGracePeriodSeconds (30)")], id="sleep longer than the grace period"),
    pytest.param({"postStart": {"sleep": {"seconds": -1}}},
        [("lifecycle.postStart.sleep: Invalid value: -1: must be non-negative and less than "
          "terminationGracePeriodSeconds (30)")], id="negative sleep"),
    pytest.param({"preStop": {"tcpSocket": {"port": -1}}},
        ["lifecycle.preStop.tcpSocket.port: Invalid value: -1: must be between 1 and 65535, inclusive"],
        id="invalid port of a hook"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), HOOKS)
def test_hooks_are_validated(change, expected):
    assert errors_of({"lifecycle": change}) == expected


RESTARTS = [
    pytest.param({"restartPolicy": "OnFailure"}, [], id="policy"),
    pytest.param({"restartPolicy": "Sometimes"},
        ['restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"'],
        id="unknown policy"),
    pytest.param({"restartPolicy": ""},
        ['restartPolicy: Unsupported value: "": supported values: "Always", "Never", "OnFailure"'], id="empty policy"),
    pytest.param(rules([RULE]), [], id="rule"),
    pytest.param(rules([{**RULE, "action": "RestartAllContainers"}]), [], id="rule that restarts all containers"),
    pytest.param({"restartPolicyRules": [RULE]},
        ["restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
        id="rule without policy"),
    pytest.param(rules([RULE] * 20), [], id="twenty rules"),
    pytest.param(rules([RULE] * 21),
        ["restartPolicyRules: Too many: 21: must have at most 20 items"], id="twenty-one rules"),
    pytest.param(rules([{**RULE, "action": "Stop"}]),
        [('restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", '
          '"RestartAllContainers"')], id="unknown action"),
    pytest.param(rules([{"action": "Restart"}]),
        ["restartPolicyRules[0].exitCodes: Required value: must be specified"], id="rule without exit codes"),
    pytest.param(rules([{"action": "Restart", "exitCodes": {"operator": "Is", "values": [1]}}]),
        ['restartPolicyRules[0].exitCodes.operator: Unsupported value: "Is": supported values: "In", "NotIn"'],
        id="unknown operator"),
    pytest.param(rules([{"action": "Restart", "exitCodes": {"operator": "In"}}]), [], id="no values"),
    pytest.param(rules([{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [*range(255)]}}]),
        [], id="255 values"),
    pytest.param(rules([{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [*range(256)]}}]),
        ["restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items"], id="256 values"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), RESTARTS)
def test_restart_rules_are_validated(change, expected):
    assert errors_of(change) == expected


RESIZES = [
    pytest.param([RESIZED, {"resourceName": "memory", "restartPolicy": "RestartContainer"}], [], id="both resources"),
    pytest.param([RESIZED, RESIZED], ['resizePolicy[1]: Duplicate value: "cpu"'], id="same resource twice"),
    pytest.param([{"resourceName": "gpu", "restartPolicy": "NotRequired"}],
        ['resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory"'], id="unknown resource"),
    pytest.param([{"restartPolicy": "NotRequired"}], ["resizePolicy: Required value"], id="no resource"),
    pytest.param([{"resourceName": "cpu", "restartPolicy": "Restart"}],
        ['resizePolicy: Unsupported value: "Restart": supported values: "NotRequired", "RestartContainer"'],
        id="unknown policy"),
    pytest.param([{"resourceName": "cpu"}], ["resizePolicy: Required value"], id="no policy"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), RESIZES)
def test_resize_policies_are_validated(change, expected):
    assert errors_of({"resizePolicy": change}) == expected


INIT = [
    pytest.param(init(), [], id="init container"),
    pytest.param(init(restartPolicy="Always", livenessProbe={**TCP, "successThreshold": 1}, lifecycle={"preStop": EXEC}),
        [], id="sidecar"),
    pytest.param(init(restartPolicy="Never"), [], id="policy of a container that ends"),
    pytest.param(init(restartPolicy="Sometimes"),
        [('spec.initContainers[0].restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
          '"Never", "OnFailure"')], id="unknown policy"),
    pytest.param(init(restartPolicyRules=[RULE]),
        [("spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules "
          "are used")], id="rules without policy"),
    pytest.param(init(name="c"), ['spec.initContainers[0].name: Duplicate value: "c"'], id="name of a container"),
    pytest.param(init(name=""), ["spec.initContainers[0].name: Required value"], id="no name"),
    pytest.param({"initContainers": [{**CONTAINER, "name": "i"}, {**CONTAINER, "name": "i"}]},
        ['spec.initContainers[1].name: Duplicate value: "i"'], id="same name twice"),
    pytest.param(init(image=""), ["spec.initContainers[0].image: Required value"], id="no image"),
    pytest.param(init(image=" a"),
        ['spec.initContainers[0].image: Invalid value: " a": must not have leading or trailing whitespace'],
        id="blank image"),
    pytest.param(init(lifecycle={}),
        [("spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without "
          "restartPolicy=Always")], id="container that ends has lifecycle"),
    pytest.param(init(livenessProbe=TCP, readinessProbe=TCP, startupProbe=TCP),
        [("spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
          "restartPolicy=Always"),
         ("spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without "
          "restartPolicy=Always"),
         ("spec.initContainers[0].startupProbe: Forbidden: may not be set for init containers without "
          "restartPolicy=Always")], id="container that ends has probes"),
    pytest.param(init(resizePolicy=[RESTARTED]),
        [('spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be '
          "set to 'RestartContainer' for non-sidecar initContainers")], id="container that ends restarts when resized"),
    pytest.param(init(restartPolicy="Always", resizePolicy=[RESTARTED]), [], id="sidecar restarts when resized"),
    pytest.param(init(restartPolicy="Always", startupProbe={}),
        ["spec.initContainers[0].startupProbe: Required value: must specify a handler type",
         "spec.initContainers[0].startupProbe.successThreshold: Invalid value: 0: must be 1"],
        id="invalid probe of a sidecar"),
    pytest.param(init(ports=[PORT] * 2),
        ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//1"'], id="same host port twice in one"),
    pytest.param({"initContainers": [{**CONTAINER, "name": name, "ports": [PORT]} for name in "ij"]},
        [], id="same host port in two"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), INIT)
def test_init_containers_are_validated(change, expected):
    assert pod_errors(change) == expected


PODS = [
    pytest.param({"containers": []}, ["spec.containers: Required value"], id="no containers"),
    pytest.param({"containers": ABSENT}, ["spec.containers: Required value"], id="absent containers"),
    pytest.param({"containers": [CONTAINER, CONTAINER]},
        ['spec.containers[1].name: Duplicate value: "c"'], id="same name twice"),
    pytest.param({"containers": [{**CONTAINER, "name": name, "ports": [PORT]} for name in "cd"]},
        ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//1"'], id="same host port in two containers"),
    pytest.param({"ephemeralContainers": [{**CONTAINER, "name": "e"}]},
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"], id="ephemeral containers of a new pod"),
    pytest.param({"restartPolicy": "Never", "containers.0.resizePolicy": [RESTARTED]},
        [("spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod "
          "`restartPolicy` is 'Never'")], id="pod that never restarts resizes with restart"),
    pytest.param({"terminationGracePeriodSeconds": ABSENT, "containers.0.lifecycle": {"preStop": {"sleep": {"seconds": -1}}}},
        ["spec.terminationGracePeriodSeconds: Required value"], id="pod without grace period"),
    pytest.param({"hostNetwork": True, "containers.0.ports": [{"containerPort": 1, "hostPort": 2, "protocol": "TCP"}]},
        [("spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when "
          "`hostNetwork` is true")], id="host network with other host port"),
    pytest.param({"hostNetwork": True, "containers.0.ports": [{"containerPort": 1, "protocol": "TCP"}]},
        [("spec.containers[0].ports[0].hostPort: Invalid value: 0: must match `containerPort` when "
          "`hostNetwork` is true")], id="host network without host port"),
    pytest.param({"hostNetwork": True, "containers.0.ports": [PORT]}, [], id="host network with the same host port"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PODS)
def test_containers_of_pods_are_validated(change, expected):
    assert pod_errors(change) == expected
