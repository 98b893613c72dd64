"""Uncommon requests, each with the response of a real kube-apiserver 1.36.3."""

import orjson
import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import GROUP, WIDGETS, define, definition, version

NS = "/api/v1/namespaces/default"
WORKLOADS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
APPLY, MERGE, STRATEGIC = "apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


# --- annotations that are fields of upstream's own types

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
GENERATION, ROLLBACK = "deprecated.daemonset.template.generation", "deprecated.deployment.rollback.to"
NO_NUMBER = 'strconv.ParseInt: parsing "x": invalid syntax'


def workload(kind, name="w", **annotations):
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    metadata = {"name": name} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "path", "annotation", "problem"),
    [
        ("DaemonSet", f"{WORKLOADS}/daemonsets", GENERATION, NO_NUMBER),
        (
            "Deployment",
            f"{WORKLOADS}/deployments",
            ROLLBACK,
            f"failed to parse annotation[{ROLLBACK}]=x as int64: {NO_NUMBER}",
        ),
    ],
)
async def test_non_numeric_annotation_is_refused_by_every_write(client, kind, path, annotation, problem):
    created = await client.post(path, workload(kind))
    assert created.status == 201, created.body
    bad, patch = workload(kind, **{annotation: "x"}), {"metadata": {"annotations": {annotation: "x"}}}
    for refused in (await client.post(path, bad), await client.put(f"{path}/w", bad)):
        message = f'{kind} in version "v1" cannot be handled as a {kind}: {problem}'
        assert (refused.status, refused.body["message"]) == (400, message)
    merged = await client.patch(f"{path}/w", patch, kind=MERGE)
    message = merged.body["message"]
    assert (merged.status, message.startswith(' "" is invalid: patch: Invalid value: ')) == (422, True)
    assert message.endswith(f": {problem}")
    strategic = await client.patch(f"{path}/w", patch, kind=STRATEGIC)
    assert (strategic.status, strategic.body["message"]) == (500, problem)
    applied = await client.patch(
        f"{path}/other?fieldManager=m", workload(kind, "other", **{annotation: "x"}), kind=APPLY
    )
    message = f"failed to convert to unversioned (/other; apps/v1, Kind={kind}): {problem}"
    assert (applied.status, applied.body["message"]) == (500, message)


async def test_nothing_rolls_back_to_a_revision_below_zero(client):
    refused = await client.post(f"{WORKLOADS}/deployments", workload("Deployment", **{ROLLBACK: "-1"}))
    problem = "spec.rollback.version: Invalid value: -1: must be greater than or equal to 0"
    assert (refused.status, refused.body["message"]) == (422, f'Deployment.apps "w" is invalid: {problem}')
    created = await client.post(f"{WORKLOADS}/deployments", workload("Deployment", **{ROLLBACK: "0"}))
    assert created.status == 201


# --- creations, and objects that are still being deleted


async def test_apply_of_status_creates_policy(client):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [rule]}},
        "status": {"observedGeneration": 1},
    }
    patched = await client.patch(f"{POLICIES}/p/status?fieldManager=m", policy, kind=APPLY)
    assert (patched.status, patched.body["status"]) == (201, {})
    (entry,) = patched.body["metadata"]["managedFields"]
    fields = {"f:status": {"f:observedGeneration": {}}}
    assert (entry["operation"], entry["fieldsV1"], entry["subresource"]) == ("Apply", fields, "status")
    policy["metadata"]["name"] = "q"
    assert (await client.put(f"{POLICIES}/q/status", policy)).status == 404
    without_spec = {name: value for name, value in policy.items() if name != "spec"}
    refused = await client.patch(f"{POLICIES}/q/status?fieldManager=m", without_spec, kind=APPLY)
    causes = [cause["field"] for cause in refused.body["details"]["causes"]]
    assert causes == ["spec.matchConstraints", "spec.validations", "spec.auditAnnotations"]


async def test_namespace_without_finalizers_is_removed_by_second_deletion(client):
    path = "/api/v1/namespaces/n"
    await client.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    assert (await client.put(f"{path}/finalize", named)).body["spec"] == {}
    marked = await client.send("DELETE", path)
    assert (marked.status, marked.body["status"]["phase"]) == (200, "Terminating")
    assert "deletionGracePeriodSeconds" not in marked.body["metadata"]
    assert (await client.get(path)).body["metadata"]["deletionTimestamp"]
    ended = await client.send("DELETE", path)
    assert (ended.status, ended.body["status"]) == (200, "Success")
    assert (await client.get(path)).status == 404


async def test_namespace_deletion_keeps_generation_and_propagation_policy(client):
    path = "/api/v1/namespaces/n"
    created = await client.post("/api/v1/namespaces", {"metadata": {"name": "n", "generation": 3}})
    assert (created.status, created.body["metadata"]["generation"]) == (201, 3)
    marked = (await client.send("DELETE", path)).body["metadata"]
    again = (await client.send("DELETE", f"{path}?propagationPolicy=Foreground")).body["metadata"]
    assert (marked["generation"], marked.get("finalizers")) == (3, None)
    assert again == marked


async def test_apply_without_changes_sets_no_defaults_of_version(client):
    status = {"type": "object", "properties": {"c": {"type": "boolean", "default": False}}}
    schemas = [{"type": "object", "properties": {"status": each}} for each in ({"type": "object"}, status)]
    versions = [version("v1", schema=schemas[0]), version("v2", schema=schemas[1], storage=False)]
    await define(client, definition(*versions))
    path = WIDGETS.replace("/v1/", "/v2/")
    widget = {"apiVersion": f"{GROUP}/v2", "kind": "Widget", "metadata": {"name": "w"}}
    created = await client.post(path, widget | {"status": {}})
    assert (created.status, created.body["status"]) == (201, {})
    applied = await client.patch(f"{path}/w?fieldManager=m", widget, kind=APPLY)
    assert (applied.status, applied.body) == (200, created.body)


# --- names

NO_ACCOUNT = 'pods "p" is forbidden: error looking up service account default'
NO_ADDRESS = (
    'metadata.name: Invalid value: "1": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
)


async def test_ip_address_name_is_not_generated(client):
    addresses = "/apis/networking.k8s.io/v1/ipaddresses"
    service = {"group": "", "resource": "services", "namespace": "default", "name": "kubernetes"}
    refused = await client.post(
        addresses, {"metadata": {"generateName": "1"}, "spec": {"parentRef": service}}
    )
    assert (refused.status, NO_ADDRESS in refused.body["message"]) == (422, True)
    address = {"metadata": {"generateName": "10.9.9.9"}, "spec": {"parentRef": service}}
    assert (await client.post(addresses, address)).body["metadata"]["name"] == "10.9.9.9"
    refused = await client.post(addresses, address)
    assert refused.status == 409
    assert "was not able to generate a unique name" in refused.body["message"]


async def test_generated_name_of_namespace_is_not_validated_as_label(client):
    refused = await client.post("/api/v1/namespaces", {"metadata": {"generateName": "-"}})
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [
        "metadata.generateName",
        "metadata.name",
    ]
    created = await client.post("/api/v1/namespaces", {"metadata": {"generateName": "a-"}})
    name = created.body["metadata"]["name"]
    assert created.body["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}


async def test_name_in_use_with_generate_name_is_retriable_conflict(client):
    named = {"metadata": {"name": "c", "generateName": "c-", "finalizers": ["example.com/f"]}}
    assert (await client.post(f"{NS}/configmaps", named)).status == 201
    problem = (
        'configmaps "c" already exists, the server was not able to generate a unique name for the object'
    )
    refused = await client.post(f"{NS}/configmaps", named)
    assert (refused.status, refused.body["message"]) == (409, problem)
    assert refused.body["details"]["retryAfterSeconds"] == 1
    await client.send("DELETE", f"{NS}/configmaps/c")
    refused = await client.post(f"{NS}/configmaps", named)
    assert (refused.status, refused.body["message"]) == (409, f"object is being deleted: {problem}")


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        ({"runtimeClassName": ""}, 500, "resource name may not be empty"),
        ({"runtimeClassName": "a/b"}, 500, "invalid resource name \"a/b\": [may not contain '/']"),
        ({"runtimeClassName": "."}, 500, "invalid resource name \".\": [may not be '.']"),
        (
            {"serviceAccountName": "a%"},
            403,
            f"{NO_ACCOUNT}/a%: invalid resource name \"a%\": [may not contain '%']",
        ),
    ],
)
async def test_pod_with_invalid_references_is_refused(client, spec, status, message):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    refused = await client.post(f"{NS}/pods", {"metadata": {"name": "p"}, "spec": TEMPLATE["spec"] | spec})
    assert (refused.status, refused.body["message"]) == (status, message)


# --- values


@pytest.mark.parametrize(
    ("source", "causes"),
    [
        (
            {"name": "a-b", "container": "a"},
            [
                'name: Invalid value: "a-b": must be a standard resource type or fully qualified',
                'name: Invalid value: "a-b": must be a standard resource for containers',
            ],
        ),
        ({"name": "cpu", "container": "A_"}, ['container: Invalid value: "A_": a lowercase RFC 1123 label']),
        ({"name": "cpu", "container": "a"}, []),
    ],
)
async def test_container_resource_metric_is_validated(client, source, causes):
    metric = source | {"target": {"type": "Utilization", "averageUtilization": 5}}
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    spec = {"maxReplicas": 5, "scaleTargetRef": target}
    spec["metrics"] = [{"type": "ContainerResource", "containerResource": metric}]
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    answer = await client.post(path, {"metadata": {"name": "h"}, "spec": spec})
    found = answer.body.get("details", {}).get("causes", ()) if answer.status == 422 else ()
    shown = [f"{cause['field'].rpartition('.')[2]}: {cause['message']}" for cause in found]
    assert [text[: len(cause)] for text, cause in zip(shown, causes, strict=True)] == causes


async def test_message_shows_dropped_empty_list_as_null():
    attribute = {"bool": True, "string": "a", "versions": []}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "d", "attributes": {"b": attribute}}]
    spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": devices}
    async with apiserver.running("--kubernetes-version=1.36") as client:
        refused = await client.post(
            "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "s"}, "spec": spec}
        )
    assert (refused.status, '"VersionValues":null}' in refused.body["message"]) == (422, True)


@pytest.mark.parametrize(
    ("amount", "is_whole"),
    [
        ("-9223372036854775808", True),
        ("18446744073709551615", True),
        ("1e20", True),
        ("100E", True),
        ("10Ei", True),
        ("12345678901234567890", False),
        ("123456789012345678901234567890", False),
        ("1Ei", False),
        ("0.5", False),
    ],
)
async def test_integer_check_of_quantity_uses_low_64_bits(client, amount, is_whole):
    answer = await client.post(
        f"{NS}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": amount}}}
    )
    assert ("must be an integer" not in answer.body.get("message", "")) == is_whole


# --- null


async def test_null_body_is_object_without_fields(client):
    refused = await client.post(f"{NS}/configmaps", b"null")
    problem = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    assert (refused.status, refused.body["message"]) == (422, problem)
    refused = await client.put(f"{NS}/configmaps/c", b" null\n")
    problem = "the name of the object (c based on URL) was undeterminable: name must be provided"
    assert (refused.status, refused.body["message"]) == (400, problem)


@pytest.mark.parametrize(("resource", "field"), [("secrets", "data"), ("configmaps", "binaryData")])
async def test_bytes_that_are_null_are_stored_as_none(client, resource, field):
    created = await client.post(
        f"{NS}/{resource}", {"metadata": {"name": "x"}, field: {"a": None, "b": "Yg=="}}
    )
    assert (created.status, created.body[field]) == (201, {"a": "", "b": "Yg=="})
    assert (await client.get(f"{NS}/{resource}/x")).body[field] == {"a": "", "b": "Yg=="}


# --- the resizing of claims

STATUSES = (
    'supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", '
    '"NodeResizeInfeasible", "NodeResizePending"'
)


@pytest.mark.parametrize(
    ("status", "problems"),
    [
        pytest.param(
            {"allocatedResources": {"storage": "-1"}, "allocatedResourceStatuses": {"storage": "x"}},
            [
                f'status.allocatedResourceStatuses: Unsupported value: "storage": {STATUSES}',
                "status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
            ],
            id="amount and status",
        ),
        pytest.param(
            {"allocatedResources": {"cpu": "1"}},
            ['status.allocatedResources: Unsupported value: "cpu": supported values: "storage"'],
            id="another resource",
        ),
        pytest.param(
            {"allocatedResourceStatuses": {"cpu": "NodeResizePending"}},
            ['status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"'],
            id="a status of another resource",
        ),
        pytest.param({"allocatedResources": {"example.com/x": "1", "storage": "2Gi"}}, [], id="of a domain"),
        pytest.param({"allocatedResourceStatuses": {"storage": "NodeResizePending"}}, [], id="a status"),
    ],
)
async def test_allocated_resources_in_claim_status_are_validated(client, status, problems):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    created = await client.post(f"{NS}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})
    assert created.status == 201, created.body
    answer = await client.patch(f"{NS}/persistentvolumeclaims/c/status", {"status": status}, kind=MERGE)
    causes = answer.body.get("details", {}).get("causes", ()) if answer.status == 422 else ()
    assert [f"{cause['field']}: {cause['message']}" for cause in causes] == problems, orjson.dumps(
        answer.body
    )
    assert answer.status == (422 if problems else 200)


# --- managedFields in an applied configuration

APPLIED = f"{NS}/configmaps/m?fieldManager=a"


def applied_map(entries):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "managedFields": entries}}


@pytest.mark.parametrize("entries", [None, [None], [{}, None]])
async def test_managers_that_upstream_cannot_read_are_ignored(client, entries):
    answer = await client.patch(APPLIED, applied_map(entries) | {"data": {"a": "b"}}, kind=APPLY)
    assert answer.status == 201
    assert [entry["manager"] for entry in answer.body["metadata"]["managedFields"]] == ["a"]


CONVERTED = (
    "failed to convert new object (/m; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured "
    "object to /v1, Kind=ConfigMap"
)
TYPED = "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .metadata.managedFields[0]"


@pytest.mark.parametrize(
    ("entry", "code", "message"),
    [
        ({"apiVersion": ""}, 400, "metadata.managedFields must be nil"),
        (1, 500, f"{TYPED}: expected map, got &{{1}}"),
        (
            {"apiVersion": 1},
            500,
            f"{TYPED}.apiVersion: expected string, got &value.valueUnstructured{{Value:1}}",
        ),
        (
            {"time": "x"},
            500,
            f'{CONVERTED}: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
    ],
)
async def test_applied_managers_are_refused(client, entry, code, message):
    answer = await client.patch(APPLIED, applied_map([entry]), kind=APPLY)
    assert (answer.status, answer.body["message"]) == (code, message)


# --- empty collections that are no absent ones

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
COUNTERS = [{"name": "c", "counters": {"a": {"value": "1"}}}]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"sharedCounters": COUNTERS}, 201),
        ({"sharedCounters": COUNTERS, "devices": None}, 201),
        ({"sharedCounters": COUNTERS, "devices": []}, 422),
        ({"sharedCounters": [], "devices": []}, 422),
    ],
)
async def test_resource_slice_has_devices_or_counters_even_if_they_are_empty(client, fields, status):
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, **fields}
    answer = await client.post(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    assert answer.status == status, answer.body
    if status == 422:
        assert "only one of `sharedCounters` or `devices` is allowed" in answer.body["message"]


@pytest.mark.parametrize("claims", [None, []])
async def test_pod_level_claims_are_refused_even_if_they_are_empty(client, claims):
    template = TEMPLATE | {"spec": TEMPLATE["spec"] | {"resources": {"claims": claims}}}
    once = template | {"spec": template["spec"] | {"restartPolicy": "Never"}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    bodies = {
        f"{NS}/podtemplates": {"template": template},
        f"{NS}/replicationcontrollers": {"spec": {"template": template}},
        f"{WORKLOADS}/replicasets": {"spec": spec},
        f"{WORKLOADS}/deployments": {"spec": spec},
        f"{WORKLOADS}/daemonsets": {"spec": spec},
        f"{WORKLOADS}/statefulsets": {"spec": spec},
        JOBS: {"spec": {"template": once}},
        CRON_JOBS: {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once}}}},
    }
    for path, body in bodies.items():
        answer = await client.post(f"{path}?dryRun=All", {"metadata": {"name": "w"}} | body)
        assert answer.status == (201 if claims is None else 422), answer.body


# --- fractions of a second, which are compared, and not stored

INVALID = "status.completionTime: Invalid value: "
EARLY = f'{INVALID}"2026-01-02T03:04:05Z": must be equal to or after `startTime`'
INCOMPLETE = (
    f'{INVALID}"2026-01-02T03:04:05Z": cannot set completionTime when there is no Complete=True condition'
)
ZERO = [one.replace('"2026-01-02T03:04:05Z"', "null") for one in (EARLY, INCOMPLETE)]


@pytest.mark.parametrize(
    ("start", "completion", "refusals"),
    [
        ("2026-01-02T03:04:05.4Z", "2026-01-02T03:04:05.5Z", [INCOMPLETE]),
        ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.5Z", [INCOMPLETE]),
        ("2026-01-02T03:04:05.6Z", "2026-01-02T03:04:05.5Z", [INCOMPLETE, EARLY]),
        ("2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z", ZERO),
    ],
)
async def test_times_of_a_job_are_compared_as_they_were_sent(client, start, completion, refusals):
    spec = {"template": {"spec": TEMPLATE["spec"] | {"restartPolicy": "Never"}}}
    created = await client.post(JOBS, {"metadata": {"name": "j"}, "spec": spec})
    assert created.status == 201, created.body
    status = {"startTime": start, "completionTime": completion}
    for answer in (
        await client.patch(f"{JOBS}/j/status", {"status": status}, kind=MERGE),
        await client.put(f"{JOBS}/j/status", created.body | {"status": status}),
    ):
        causes = answer.body["details"]["causes"]
        assert {f"{cause['field']}: {cause['message']}" for cause in causes} == {*refusals}


# --- selfLink, which is dropped when an object is stored


@pytest.mark.parametrize("kind", [APPLY, MERGE, STRATEGIC])
@pytest.mark.parametrize(("options", "shown"), [("", None), ("&dryRun=All", "x")])
async def test_self_link_is_shown_by_dry_runs_of_updates_alone(client, kind, options, shown):
    path, body = f"{NS}/configmaps/m?fieldManager=a{options}", applied_map(None) | {"data": {"a": "b"}}
    body["metadata"] |= {"selfLink": "x"}
    created = await client.post(f"{NS}/configmaps?{options[1:]}", body)
    assert "selfLink" not in created.body["metadata"]
    await client.post(f"{NS}/configmaps", body)
    for answer in (await client.patch(path, body, kind=kind), await client.put(path, body)):
        assert answer.body["metadata"].get("selfLink") == shown
    assert "selfLink" not in (await client.get(f"{NS}/configmaps/m")).body["metadata"]
