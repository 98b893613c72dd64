import pytest


def container(*, restart=None, **resources):
    return {"name": "c", "resources": resources} | ({"restartPolicy": restart} if restart else {})


@pytest.fixture
def pod_spec(with_defaults):
    return lambda **spec: with_defaults("v1", "Pod", {"spec": {"containers": [container()]} | spec})["spec"]


@pytest.mark.parametrize(
    ("given", "requests"),
    [
        pytest.param({"limits": {"memory": "1Gi", "cpu": "2"}}, {"cpu": "2", "memory": "1Gi"}, id="limits"),
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            {"cpu": "1", "memory": "1Gi"},
            id="both",
        ),
        pytest.param({"requests": {"cpu": "1"}}, {"cpu": "1"}, id="requests"),
        pytest.param({"limits": {"cpu": "1500u"}}, {"cpu": "2m"}, id="an amount that is too fine"),
        pytest.param({}, None, id="empty"),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_container_requests_default_to_limits(pod_spec, field, given, requests):
    resources = pod_spec(**{field: [container(**given)]})[field][0]["resources"]
    assert resources.get("requests") == requests


def test_ephemeral_container_requests_are_not_defaulted(pod_spec):
    spec = pod_spec(ephemeralContainers=[container(limits={"cpu": "1"})])
    assert spec["ephemeralContainers"][0]["resources"] == {"limits": {"cpu": "1"}}


def test_template_container_requests_are_not_defaulted(with_defaults):
    spec = {"containers": [container(limits={"cpu": "1"})]}
    defaulted = with_defaults("apps/v1", "ReplicaSet", {"spec": {"template": {"spec": spec}}})
    assert defaulted["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("resources", "containers", "expected"),
    [
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}},
            [container()],
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}},
            id="pod limits, without container requests",
        ),
        pytest.param(
            {"limits": {"cpu": "2"}},
            [container(requests={"cpu": "100m"}), container(requests={"cpu": "250m", "memory": "1Mi"})],
            {"limits": {"cpu": "2"}, "requests": {"cpu": "350m", "memory": "1Mi"}},
            id="sum of container requests",
        ),
        pytest.param(
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
            [container(requests={"cpu": "100m"})],
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
            id="explicit pod requests",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [container(requests={"cpu": "100m", "memory": "1Mi"})],
            {"requests": {"cpu": "1"}},
            id="container requests without a pod limit are not added",
        ),
        pytest.param({}, [container(requests={"cpu": "1"})], {}, id="no pod resources"),
        pytest.param(
            {"limits": {"cpu": "1", "example.com/gpu": "1"}},
            [container(requests={"ephemeral-storage": "1Gi"})],
            {"limits": {"cpu": "1", "example.com/gpu": "1"}, "requests": {"cpu": "1"}},
            id="supported pod-level resources only",
        ),
    ],
)
def test_pod_level_requests_default(pod_spec, resources, containers, expected):
    assert pod_spec(resources=resources, containers=containers)["resources"] == expected


PAGES = "hugepages-2Mi"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            {"limits": {"cpu": "1"}},
            {"limits": {"cpu": "1", PAGES: "6Mi"}, "requests": {"cpu": "1", PAGES: "6Mi"}},
            id="those of its containers together",
        ),
        pytest.param(
            {"limits": {PAGES: "8Mi"}},
            {"limits": {PAGES: "8Mi"}, "requests": {PAGES: "8Mi"}},
            id="its own limit",
        ),
        pytest.param(
            {"requests": {PAGES: "8Mi"}},
            {"requests": {PAGES: "8Mi"}},
            id="request of huge pages sets no limit",
        ),
    ],
)
def test_pod_level_huge_pages_default(pod_spec, resources, expected):
    containers = [container(limits={PAGES: "2Mi"}), container(limits={PAGES: "4Mi"})]
    assert pod_spec(resources=resources, containers=containers)["resources"] == expected


SIDECAR = {"restart": "Always"}


@pytest.mark.parametrize(
    ("first", "cpu"),
    [
        pytest.param([container(requests={"cpu": "200m"})], "200m", id="largest init container request"),
        pytest.param(
            [container(requests={"cpu": "50m"})], "100m", id="container request above init container request"
        ),
        pytest.param([container(requests={"cpu": "50m"}, **SIDECAR)], "150m", id="sidecar request is added"),
        pytest.param(
            [container(requests={"cpu": "50m"}, **SIDECAR), container(requests={"cpu": "200m"})],
            "250m",
            id="init container after a sidecar adds its request",
        ),
        pytest.param(
            [container(requests={"cpu": "200m"}), container(requests={"cpu": "50m"}, **SIDECAR)],
            "200m",
            id="init container before a sidecar does not add its request",
        ),
    ],
)
def test_pod_level_requests_are_maximum_of_containers(pod_spec, first, cpu):
    spec = pod_spec(
        resources={"limits": {"cpu": "2"}},
        initContainers=first,
        containers=[container(requests={"cpu": "100m"})],
    )
    assert spec["resources"]["requests"] == {"cpu": cpu}
