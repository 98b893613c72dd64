import pytest

from mockube.apiserver.kinds.core.pod.pod_level import fill_older_pod_level, fill_pod_level

FILLS = {"1.37": fill_pod_level, "1.36": fill_older_pod_level}


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


@pytest.fixture(params=FILLS)
def filled(pod_spec, request):
    """Return the resources of a pod as a minor completes them."""

    def fill(**spec):
        defaulted = pod_spec(**spec)
        FILLS[request.param](defaulted)
        return defaulted["resources"]

    return fill


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
        pytest.param({}, [container(requests={"cpu": "1"})], {}, id="no pod resources"),
        pytest.param(
            {"limits": {"cpu": "1", "example.com/gpu": "1"}},
            [container(requests={"ephemeral-storage": "1Gi"})],
            {"limits": {"cpu": "1", "example.com/gpu": "1"}, "requests": {"cpu": "1"}},
            id="supported pod-level resources only",
        ),
    ],
)
def test_pod_level_requests_default(filled, resources, containers, expected):
    assert filled(resources=resources, containers=containers) == expected


@pytest.mark.parametrize(
    ("resources", "containers", "expected"),
    [
        pytest.param(
            {"requests": {"cpu": "1"}},
            [container(requests={"cpu": "100m", "memory": "1Mi"})],
            {"requests": {"cpu": "1", "memory": "1Mi"}},
            id="requests of containers are added without a limit",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [container(limits={"cpu": "500m"}), container(limits={"cpu": "1500m"})],
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
            id="limits of all containers",
        ),
        pytest.param(
            {"requests": {"cpu": "3"}},
            [container(limits={"cpu": "500m"})],
            {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}},
            id="request above the limits of all containers",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [container(limits={"cpu": "500m"}), container()],
            {"requests": {"cpu": "1"}},
            id="a container without a limit",
        ),
        pytest.param(
            {"limits": {"memory": "1Gi"}},
            [container(limits={"cpu": "500m"})],
            {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
            id="limit of another resource",
        ),
    ],
)
def test_pod_level_limits_default_since_1_37(pod_spec, resources, containers, expected):
    spec = pod_spec(resources=resources, containers=containers)
    fill_pod_level(spec)
    assert spec["resources"] == expected


def test_pod_level_limits_do_not_default_until_1_36(pod_spec):
    spec = pod_spec(resources={"requests": {"cpu": "1"}}, containers=[container(limits={"cpu": "2"})])
    fill_older_pod_level(spec)
    assert spec["resources"] == {"requests": {"cpu": "1"}}


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
    ],
)
def test_pod_level_huge_pages_default(filled, resources, expected):
    containers = [container(limits={PAGES: "2Mi"}), container(limits={PAGES: "4Mi"})]
    assert filled(resources=resources, containers=containers) == expected


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
def test_pod_level_requests_are_maximum_of_containers(filled, first, cpu):
    resources = filled(
        resources={"limits": {"cpu": "2"}},
        initContainers=first,
        containers=[container(requests={"cpu": "100m"})],
    )
    assert resources["requests"] == {"cpu": cpu}
