import pytest

CONTAINER = {
    "name": "c",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
"""A container with its defaults; an omitted image has no tag."""

SPEC = {
    "containers": [CONTAINER],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


@pytest.fixture
def pod_spec(with_defaults):
    return lambda **spec: with_defaults("v1", "Pod", {"spec": {"containers": [{"name": "c"}]} | spec})["spec"]


@pytest.fixture
def container(pod_spec):
    return lambda **fields: pod_spec(containers=[{"name": "c"} | fields])["containers"][0]


def test_pod_defaults(pod_spec):
    assert pod_spec() == SPEC | {"enableServiceLinks": True}


def test_empty_pod_defaults(with_defaults):
    assert with_defaults("v1", "Pod", {})["spec"] == SPEC | {"containers": None, "enableServiceLinks": True}


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "PodTemplate", ()),
        ("v1", "ReplicationController", ("spec",)),
        ("apps/v1", "ReplicaSet", ("spec",)),
        ("batch/v1", "CronJob", ("spec", "jobTemplate", "spec")),
    ],
)
def test_pod_template_defaults_are_subset_of_pod_defaults(with_defaults, api_version, kind, path):
    tree = {"template": {"spec": {"containers": [{"name": "c"}]}}}
    for step in reversed(path):
        tree = {step: tree}
    found = with_defaults(api_version, kind, tree)
    for step in path:
        found = found[step]
    assert found["template"]["spec"] == SPEC


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"restartPolicy": "Never"}, {"restartPolicy": "Never"}, id="restart policy"),
        pytest.param(
            {"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}, id="no grace"
        ),
        pytest.param({"enableServiceLinks": False}, {"enableServiceLinks": False}, id="no service links"),
        pytest.param(
            {"securityContext": {"runAsUser": 0}}, {"securityContext": {"runAsUser": 0}}, id="security"
        ),
    ],
)
def test_specified_pod_fields_are_kept(pod_spec, given, expected):
    assert pod_spec(**given) == SPEC | {"enableServiceLinks": True} | expected


@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
def test_defaults_of_every_kind_of_container(pod_spec, field):
    assert pod_spec(**{field: [{"name": "c"}]})[field] == [CONTAINER]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"image": "nginx"}, {"imagePullPolicy": "Always"}, id="the latest image"),
        pytest.param({"image": "nginx:1"}, {"imagePullPolicy": "IfNotPresent"}, id="a tagged image"),
        pytest.param(
            {"image": "nginx", "imagePullPolicy": "Never"}, {"imagePullPolicy": "Never"}, id="a policy"
        ),
        pytest.param({"ports": [{}]}, {"ports": [{"containerPort": 0, "protocol": "TCP"}]}, id="a port"),
        pytest.param(
            {"ports": [{"containerPort": 53, "protocol": "UDP"}]},
            {"ports": [{"containerPort": 53, "protocol": "UDP"}]},
            id="a port of UDP",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
            {
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
                    }
                ]
            },
            id="a variable from a field",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"httpGet": {"port": 80}}}},
            {"lifecycle": {"preStop": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}}},
            id="a hook",
        ),
        pytest.param(
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            id="a message's policy",
        ),
    ],
)
def test_container_defaults(container, given, expected):
    assert container(**given) == CONTAINER | given | expected


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe", "startupProbe"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"tcpSocket": {"port": 1}}, {}, id="a socket"),
        pytest.param({"exec": {"command": ["x"]}, "timeoutSeconds": 9}, {"timeoutSeconds": 9}, id="patience"),
        pytest.param({"timeoutSeconds": 0, "exec": {}}, {}, id="zero is omitted"),
        pytest.param(
            {"httpGet": {"port": 80, "scheme": "HTTPS"}},
            {"httpGet": {"path": "/", "port": 80, "scheme": "HTTPS"}},
            id="HTTP",
        ),
        pytest.param({"grpc": {"port": 1}}, {"grpc": {"port": 1, "service": ""}}, id="gRPC"),
    ],
)
def test_probe_defaults(container, probe, given, expected):
    times = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert container(**{probe: given})[probe] == given | times | expected


@pytest.mark.parametrize(
    ("host_network", "given", "expected"),
    [
        pytest.param(True, {"containerPort": 80}, 80, id="the same port of the host"),
        pytest.param(True, {"containerPort": 80, "hostPort": 8080}, 8080, id="another"),
        pytest.param(True, {"containerPort": 0}, None, id="without container port"),
        pytest.param(False, {"containerPort": 80}, None, id="pod network"),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_host_network_pod_ports_default_to_container_ports(pod_spec, field, host_network, given, expected):
    spec = pod_spec(hostNetwork=host_network, **{field: [{"name": "c", "ports": [given]}]})
    assert spec[field][0]["ports"][0].get("hostPort") == expected


def test_host_network_template_ports_are_not_defaulted(with_defaults):
    spec = {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}
    defaulted = with_defaults("apps/v1", "DaemonSet", {"spec": {"template": {"spec": spec}}})
    ports = defaulted["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "protocol": "TCP"}]
