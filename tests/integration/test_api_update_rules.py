"""Validation of updates, kind by kind, compared with a real kube-apiserver 1.36."""

import pytest

from tests.support.server import apiserver

DEVICES, STORAGE = "/apis/resource.k8s.io/v1", "/apis/storage.k8s.io/v1"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
CLAIMS, TEMPLATES = (
    f"{DEVICES}/namespaces/default/{name}" for name in ("resourceclaims", "resourceclaimtemplates")
)
IMMUTABLE = "field is immutable"
CONFIG = '"Config":[{"Requests":null,"Opaque":null}]'
NO_CONSTRAINTS = f'{{"Devices":{{"Requests":null,"Constraints":null,{CONFIG}}}}}'
NO_DOMAIN = "a fully qualified name must be a domain and a name separated by a slash"
ONE_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
)


@pytest.fixture
async def client():
    async with apiserver.running("--kubernetes-version=1.36") as client:
        yield client


def field_errors(answer):
    """Return the causes as upstream's messages list them."""
    assert answer.status == 422, answer.body
    return [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("path", "fields", "patch", "problems"),
    [
        (
            CLAIMS,
            {"spec": {"devices": {}}},
            {"spec": {"devices": {"config": [{}]}}},
            [f"spec: Invalid value: {NO_CONSTRAINTS}: {IMMUTABLE}"],
        ),
        (
            TEMPLATES,
            {"spec": {"spec": {"devices": {}}}},
            {"spec": {"spec": {"devices": {"config": [{}]}}}},
            [
                "spec.spec.devices.config[0].opaque: Required value",
                f'spec: Invalid value: {{"Spec":{NO_CONSTRAINTS}}}: {IMMUTABLE}',
            ],
        ),
        (
            f"{STORAGE}/storageclasses",
            {"provisioner": "a"},
            {"provisioner": None, "parameters": {"": "b"}},
            [
                "provisioner: Required value",
                'parameters: Invalid value: "": field can not be empty.',
                f'parameters: Invalid value: {{"":"b"}}: {IMMUTABLE}',
                f'provisioner: Invalid value: "": {IMMUTABLE}',
            ],
        ),
        (
            f"{STORAGE}/volumeattributesclasses",
            {"driverName": "a", "parameters": {"a": "b"}},
            {"driverName": "", "parameters": None},
            [
                "driverName: Forbidden: updates to driverName are forbidden.",
                "parameters: Forbidden: updates to parameters are forbidden.",
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ],
        ),
        (
            f"{DEVICES}/deviceclasses",
            {"spec": {"extendedResourceName": "a.b/c"}},
            {"spec": {"extendedResourceName": "x"}},
            ['spec.extendedResourceName: Invalid value: "x": must be a valid extended resource name'],
        ),
    ],
)
async def test_invalid_update_is_refused(client, path, fields, patch, problems):
    assert (await client.post(path, {"metadata": {"name": "x"}, **fields})).status == 201
    assert field_errors(await client.patch(f"{path}/x", patch)) == problems


@pytest.mark.parametrize("name", ["", "a", "a.b/", "kubernetes.io/a", "requests.a.b/c"])
async def test_device_class_maps_extended_resource(client, name):
    made = {"metadata": {"name": "x"}, "spec": {"extendedResourceName": name}}
    (problem,) = field_errors(await client.post(f"{DEVICES}/deviceclasses", made))
    assert (
        problem
        == f'spec.extendedResourceName: Invalid value: "{name}": must be a valid extended resource name'
    )


@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        ({}, f": Required value: {ONE_ATTRIBUTE}"),
        ({"matchAttribute": "a"}, f'.matchAttribute: Invalid value: "a": {NO_DOMAIN}'),
        ({"distinctAttribute": "A_b"}, f'.distinctAttribute: Invalid value: "A_b": {NO_DOMAIN}'),
    ],
)
async def test_claim_constraint_needs_attribute(client, constraint, problem):
    made = {"metadata": {"name": "x"}, "spec": {"devices": {"constraints": [constraint]}}}
    assert field_errors(await client.post(CLAIMS, made)) == [f"spec.devices.constraints[0]{problem}"]


async def test_match_attribute_precedes_distinct_attribute(client):
    constraint = {"matchAttribute": "a.b/c", "distinctAttribute": "x"}
    made = {"metadata": {"name": "x"}, "spec": {"devices": {"constraints": [constraint]}}}
    assert (await client.post(CLAIMS, made)).status == 201


@pytest.mark.parametrize("path", ["validatingadmissionpolicybindings", "mutatingadmissionpolicybindings"])
async def test_binding_needs_existing_policy(client, path):
    made = {"policyName": "a", "matchResources": {"matchPolicy": "x"}, "validationActions": ["Deny"]}
    refused = await client.post(f"{POLICIES}/{path}", {"metadata": {"name": "x"}, "spec": made})
    assert field_errors(refused) == [
        'spec.matchResources.matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"'
    ]


async def test_volume_status_update_validates_metadata(client):
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    volumes = "/api/v1/persistentvolumes"
    await client.post(volumes, {"metadata": {"name": "v"}, "spec": spec})
    refused = await client.patch(f"{volumes}/v/status", {"metadata": {"finalizers": ["f"]}})
    assert (refused.status, "neither a standard finalizer name" in refused.body["message"]) == (422, True)
    twice = await client.patch(f"{volumes}/v", {"spec": {"accessModes": None}})
    assert [cause["field"] for cause in twice.body["details"]["causes"]] == ["spec.accessModes"] * 2
    since = (await client.get(f"{volumes}/v")).body["status"]["lastPhaseTransitionTime"]
    kept = await client.patch(f"{volumes}/v/status", {"status": {"lastPhaseTransitionTime": None}})
    assert kept.body["status"]["lastPhaseTransitionTime"] == since


async def test_service_cidr_status_keeps_metadata(client):
    networks = "/apis/networking.k8s.io/v1/servicecidrs"
    await client.post(networks, {"metadata": {"name": "n"}, "spec": {"cidrs": ["10.9.0.0/24"]}})
    answer = await client.patch(f"{networks}/n/status", {"metadata": {"labels": {"a": "b"}}})
    assert (answer.status, answer.body["metadata"].get("labels")) == (200, None)


async def test_deletecollection_at_resource_version(client):
    maps = "/api/v1/namespaces/default/configmaps"
    first = await client.post(maps, {"metadata": {"name": "a"}})
    await client.post(maps, {"metadata": {"name": "b"}})
    await client.delete(f"{maps}?resourceVersion={first.body['metadata']['resourceVersion']}")
    assert [(await client.get(f"{maps}/{name}")).status for name in "ab"] == [404, 200]


async def test_deprecation_warning_needs_acceptable_format(client):
    path = "/api/v1/namespaces/default/endpoints"
    warned = await client.get(path, Accept="application/json;as=Chart;v=v1;g=meta.k8s.io")
    unwarned = await client.get(path, Accept="text/html")
    assert ("Warning" in warned.headers, "Warning" in unwarned.headers) == (True, False)
    assert (warned.status, unwarned.status) == (406, 406)


async def test_status_update_without_labels_keeps_those_of_job_template(client):
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    path = "/apis/batch/v1/namespaces/default/jobs"
    created = (await client.post(path, job)).body
    updated = await client.put(f"{path}/j/status", job)
    assert (updated.status, updated.body["metadata"]["labels"]) == (200, created["metadata"]["labels"])
    managers = [
        entry["fieldsV1"]["f:metadata"]
        for entry in updated.body["metadata"]["managedFields"]
        if "f:metadata" in entry["fieldsV1"]
    ]
    assert managers == []


@pytest.mark.parametrize(
    ("plural", "name", "status"),
    [("configmaps", "binaryData", 422), ("configmaps", "data", 200), ("secrets", "data", 422)],
)
@pytest.mark.parametrize("method", ["put", "merge", "apply"])
async def test_empty_map_of_immutable_object_is_a_change_unless_it_is_the_default(
    client, plural, name, status, method
):
    path = f"/api/v1/namespaces/default/{plural}"
    kind = {"configmaps": "ConfigMap", "secrets": "Secret"}[plural]
    whole = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "immutable": True}
    assert (await client.post(path, whole | {name: {}})).status == 201
    if method == "put":
        answer = await client.put(f"{path}/a", whole | {name: {}})
    elif method == "merge":
        answer = await client.patch(f"{path}/a", {name: {"b": None}})
    else:
        answer = await client.patch(
            f"{path}/a?fieldManager=f&force=true", whole | {name: {}}, kind="apply-patch+yaml"
        )
    assert answer.status == status, answer.body
    if status == 422:
        (cause,) = answer.body["details"]["causes"]
        assert (cause["field"], cause["message"]) == (
            name,
            "Forbidden: field is immutable when `immutable` is set",
        )


async def test_sent_field_of_gate_that_is_off_increments_generation_of_resource_slice(client):
    path = f"{DEVICES}/resourceslices"
    attribute = {"version": "1.2.3"}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example", "nodeName": "n", "pool": pool}
    spec["devices"] = [{"name": "d", "attributes": {"c": attribute}}]
    tree = {"metadata": {"name": "a"}, "spec": spec}
    assert (await client.post(path, tree)).status == 201
    attribute["strings"] = ["a"]
    changed = (await client.put(f"{path}/a", tree)).body
    assert changed["metadata"]["generation"] == 2
    assert changed["spec"]["devices"][0]["attributes"]["c"] == {"version": "1.2.3"}
