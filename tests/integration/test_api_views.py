"""Response formats (Table, PartialObjectMetadata) and errors, compared with a real kube-apiserver 1.36."""

import pytest

from tests.support.server import apiserver

MAPS = "/api/v1/namespaces/default/configmaps"
ONE, MANY = (
    f"application/json;as={view};v=v1;g=meta.k8s.io"
    for view in ("PartialObjectMetadata", "PartialObjectMetadataList")
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
FORMATS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(MAPS, {"metadata": {"name": "x"}})
        yield client


@pytest.mark.parametrize("path", [f"{MAPS}/x", "/apis/apps/v1/namespaces/default/deployments/x/scale"])
async def test_object_formats_are_negotiated(client, path):
    refused = await client.get(path, Accept="text/html")
    assert refused.status == 406
    assert refused.body["message"] == f"406: Not Acceptable\n\nAvailable representations: {FORMATS}"


@pytest.mark.parametrize("path", [MAPS, f"{MAPS}?watch=1", "/apis/apps/v1/deployments"])
async def test_list_formats_are_negotiated(client, path):
    refused = await client.get(path, Accept="text/html")
    assert refused.status == 406
    assert (
        refused.body["message"] == f"406: Not Acceptable\n\nAvailable representations: {FORMATS}, {STREAMS}"
    )


@pytest.mark.parametrize(
    "accept",
    [
        TABLE.replace("Table", "Chart"),
        TABLE.replace("v=v1", "v=v2"),
    ],
)
@pytest.mark.parametrize("path", [MAPS, f"{MAPS}/x", f"{MAPS}?watch=1"])
async def test_unknown_view_is_not_acceptable(client, path, accept):
    refused = await client.get(path, Accept=f"text/html,{accept}")
    assert_only_whole(refused)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/apis/resource.k8s.io/v1/devicetaintrules/x/status"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/api/v1/namespaces/default/bindings"),
        ("POST", "/api/v1/namespaces/default/pods/x/eviction"),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token"),
        ("PUT", "/api/v1/namespaces/default/finalize"),
        ("GET", "/api/v1/namespaces/default/pods/x/resize"),
        ("GET", "/api/v1/namespaces/default/pods/x/ephemeralcontainers"),
        ("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval"),
        ("GET", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/x/status"),
        ("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1./status"),
        ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x/status"),
    ],
)
async def test_response_without_table_is_not_acceptable(client, method, path):
    body = None if method == "GET" else {}
    assert_only_whole(await client.send(method, path, body, Accept=TABLE))


@pytest.mark.parametrize(
    "path",
    ["/api/v1/namespaces/default/pods/x/status", "/apis/apps/v1/namespaces/default/deployments/x/scale"],
)
async def test_subresource_table_is_served(client, path):
    assert (await client.get(path, Accept=TABLE)).status == 404


async def test_review_uses_second_accepted_format(client):
    reviewed = await client.post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}},
        Accept=f"{TABLE},application/json",
    )
    assert (reviewed.status, reviewed.body["kind"]) == (201, "SelfSubjectAccessReview")


def assert_only_whole(refused):
    message = f"only the following media types are accepted: {FORMATS}"
    assert (refused.status, refused.body["message"]) == (406, message)
    assert "details" not in refused.body


@pytest.mark.parametrize(
    ("method", "path", "accept", "view", "shown"),
    [
        ("GET", f"{MAPS}/x", MANY, "PartialObjectMetadataList", "not a list (*core.ConfigMap)"),
        ("PUT", f"{MAPS}/x", MANY, "PartialObjectMetadataList", "not a list (*core.ConfigMap)"),
        ("GET", MAPS, ONE, "PartialObjectMetadata", "a list (*core.ConfigMapList)"),
        ("DELETE", f"{MAPS}?labelSelector=no", ONE, "PartialObjectMetadata", "a list (*core.ConfigMapList)"),
        ("GET", "/apis/events.k8s.io/v1/events", ONE, "PartialObjectMetadata", "a list (*core.EventList)"),
        (
            "GET",
            "/apis/networking.k8s.io/v1/networkpolicies",
            ONE,
            "PartialObjectMetadata",
            "a list (*networking.NetworkPolicyList)",
        ),
    ],
)
async def test_object_as_metadata_list_is_not_acceptable(client, method, path, accept, view, shown):
    body = {"metadata": {"name": "x"}} if method == "PUT" else None
    refused = await client.send(method, path, body, Accept=accept)
    message = f"you requested {view}, but the requested object is {shown}"
    assert (refused.status, refused.body["message"], refused.body["reason"]) == (
        406,
        message,
        "NotAcceptable",
    )
    assert "details" not in refused.body


async def test_success_status_is_returned_unconverted(client):
    assert (await client.delete(f"{MAPS}/x", Accept=MANY)).body["kind"] == "Status"


@pytest.mark.parametrize("path", [MAPS, "/api/v1/limitranges"])
async def test_metadata_list_of_empty_list_has_no_items(client, path):
    answer = await client.get(f"{path}?labelSelector=no", Accept=MANY)
    assert answer.body["items"] is None
    answer = await client.get(f"{path}?labelSelector=no", Accept=MANY.replace("json", "yaml"))
    assert b"items: null" in answer.data


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        (MAPS, []),
        ("/api/v1/limitranges", None),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", None),
    ],
)
async def test_table_of_empty_list_has_rows_if_kind_has_columns(client, path, rows):
    assert (await client.get(f"{path}?labelSelector=no", Accept=TABLE)).body["rows"] == rows
