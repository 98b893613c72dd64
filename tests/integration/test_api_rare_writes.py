"""Uncommon writes, each with the response of a real kube-apiserver 1.36.3."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import WIDGETS, define, definition, version

NS = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
NET = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}, "spec": {}}
ENDING = {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 4}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def object_x(**more):
    return {"metadata": {"name": "x"}, **more}


async def test_endpoints_subsets_are_kept(client):
    subset = {
        "addresses": [{"ip": "192.0.2.2"}, {"ip": "192.0.2.1"}],
        "ports": [{"port": 80, "protocol": "TCP"}],
    }
    created = await client.post(f"{NS}/endpoints", object_x(subsets=[subset, subset]))
    assert created.body["subsets"] == [subset, subset]


async def test_immediately_deleted_object_is_returned_unchanged(client):
    path = "/apis/storage.k8s.io/v1/storageclasses"
    await client.post(path, object_x(provisioner="p"))
    await client.delete(f"{path}/x?propagationPolicy=Orphan")
    gone = await client.delete(f"{path}/x?propagationPolicy=Background")
    assert gone.body["metadata"]["finalizers"] == ["orphan"]
    assert (await client.get(f"{path}/x")).status == 404


async def test_recreated_controller_revision_keeps_its_bytes(client):
    path, text = f"{APPS}/controllerrevisions", b'{"metadata":{"name":"x"},"revision":1,"data":{"a": 1}}'
    await client.send("POST", path, text)
    await client.delete(f"{path}/x?propagationPolicy=Orphan")
    again = await client.send("PUT", f"{path}/x", text)
    assert again.status == 200, again.body


@pytest.mark.parametrize("seconds", [0, 3])
async def test_deletion_grace_period_cannot_be_set(client, seconds):
    await client.post(f"{NS}/configmaps", object_x())
    changed = {"metadata": {"name": "x", "deletionGracePeriodSeconds": seconds}}
    refused = await client.put(f"{NS}/configmaps/x", changed)
    path = "metadata.deletionGracePeriodSeconds"
    assert (
        refused.body["message"]
        == f'ConfigMap "x" is invalid: {path}: Invalid value: {seconds}: field is immutable'
    )


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
@pytest.mark.parametrize("way", ["create", "update", "apply"])
async def test_terminating_object_may_be_created_by_update_or_apply_until_1_36(way, minor):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = LEASE | {"metadata": {"name": "x", "selfLink": "s"} | ENDING}
    async with apiserver.running(f"--kubernetes-version={minor}") as client:
        if way == "create":
            made = await client.post(path, lease)
        elif way == "update":
            made = await client.put(f"{path}/x", lease)
        else:
            made = await client.patch(f"{path}/x?fieldManager=f", lease, kind="apply-patch+yaml")
    kept = made.body["metadata"].items() & ENDING.items()
    is_terminating = way != "create" and minor == "1.36"
    assert (made.status, kept) == (201, {*ENDING.items()} if is_terminating else set())
    assert "selfLink" not in made.body["metadata"]


async def test_service_may_be_created_by_status_apply(client):
    service = {"apiVersion": "v1", "kind": "Service", **object_x(spec={"ports": [{"port": 80}]})}
    patched = await client.patch(f"{NS}/services/x/status?fieldManager=f", service, kind="apply-patch+yaml")
    assert (patched.status, patched.body["metadata"].get("managedFields")) == (201, None)


def allocation(name, problem):
    refused = f'IPAddress.networking.k8s.io "IP" is invalid: spec.parentRef.name: {problem}'
    return (
        f'Service "{name}" is invalid: spec.clusterIPs: Invalid value: [""]: failed to allocate IP: {refused}'
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", allocation("", "Required value")),
        ("a/b", allocation("a/b", "Invalid value: \"a/b\": may not contain '/'")),
    ],
)
async def test_service_address_needs_service_name(client, name, message):
    service = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
    refused = (await client.post(f"{NS}/services", service)).body["message"]
    before, _, rest = refused.partition('k8s.io "')
    assert f'{before}k8s.io "IP{rest[rest.index(chr(34)) :]}' == message
    dry = await client.post(f"{NS}/services?dryRun=All", service)
    assert "metadata.name" in dry.body["message"]


async def test_dry_run_checks_address_range_only(client):
    service = object_x(spec={"ports": [{"port": 80}], "clusterIP": "172.16.0.9"})
    refused = await client.post(f"{NS}/services?dryRun=All", service)
    problem = "the provided IP (172.16.0.9) is not in the valid range. The range of valid IPs is 10.0.0.0/16"
    assert refused.body["message"].endswith(f"failed to allocate IP 172.16.0.9: {problem}")
    service["spec"]["clusterIP"] = "10.0.0.9"
    assert (await client.post(f"{NS}/services", service)).status == 201
    service["metadata"] = {"name": "y"}
    assert (await client.post(f"{NS}/services", service)).status == 422
    assert (await client.post(f"{NS}/services?dryRun=All", service)).status == 201


async def test_empty_lists_count_as_changes_for_some_kinds(client):
    policy = object_x(spec={"podSelector": {}, "policyTypes": ["Ingress"]})
    await client.post(NET, policy)
    generations = []
    for more in ({}, {"ingress": []}, {"ingress": []}, {"podSelector": {"matchLabels": {}}}):
        changed = await client.put(f"{NET}/x", policy | {"spec": policy["spec"] | more})
        generations.append(changed.body["metadata"]["generation"])
    assert generations == [1, 2, 3, 4]
    hook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    hook["clientConfig"] = {"url": "https://x/"}
    created = (await client.post(HOOKS, object_x(webhooks=[hook]))).body
    again = (await client.put(f"{HOOKS}/x", created | {"webhooks": [hook]})).body
    assert again["metadata"]["generation"] == 1
    changed = await client.put(f"{HOOKS}/x", again | {"webhooks": [hook | {"rules": []}]})
    assert changed.body["metadata"]["generation"] == 2


async def test_empty_lists_do_not_change_resource_claims(client):
    await client.post(CLAIMS, object_x())
    patched = await client.patch(f"{CLAIMS}/x", {"spec": {"devices": {"requests": [], "config": []}}})
    assert patched.status == 200, patched.body


DAEMONS = {"selector": {"matchLabels": {"a": "b"}}} | {
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
}


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (b'{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1000.0}}}}', ""),
        (
            b'{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1.5}}}}',
            "json: cannot unmarshal number 1.5 into Go value of type int32",
        ),
        (b'{"apiVersion":[null]}', "unrecognized type: string"),
        (b'{"kind":{}}', "unrecognized type: string"),
    ],
)
async def test_strategic_patch_is_converted_as_in_go(client, patch, problem):
    await client.post(f"{APPS}/daemonsets", object_x(spec=DAEMONS))
    answer = await client.patch(f"{APPS}/daemonsets/x", patch, kind="strategic-merge-patch+json")
    assert answer.status == (422 if problem else 200)
    assert not problem or answer.body["message"].endswith(problem)


async def test_data_source_of_any_kind_is_kept_with_data_source_ref(client):
    claim = object_x(
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": {"apiGroup": "a", "kind": "K", "name": "n"},
            "dataSourceRef": {"apiGroup": "a", "kind": "Other", "name": "n"},
        }
    )
    refused = await client.post(f"{NS}/persistentvolumeclaims", claim)
    assert "spec: Invalid value: {}: must match dataSourceRef" in refused.body["message"]


async def test_webhook_path_ignores_first_byte(client):
    hook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    hook["clientConfig"] = {"service": {"name": "n", "namespace": "n", "path": "ä"}}
    refused = await client.post(HOOKS, object_x(webhooks=[hook]))
    assert 'Invalid value: "ä": segment[0]: a lowercase RFC 1123 subdomain' in refused.body["message"]


NUMBERED = {
    "type": "object",
    "properties": {
        "spec": {"type": "object"},
        "status": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": {}}


async def test_custom_object_status_is_dropped(client):
    await define(client, definition(version(schema=NUMBERED, subresources={"status": {}})))
    for name, status, owners in (("x", {"a": "b"}, None), ("y", {"a": 1}, 1)):
        created = await client.post(WIDGETS, WIDGET | {"metadata": {"name": name}, "status": status})
        managers = created.body["metadata"].get("managedFields")
        assert (created.status, managers and len(managers)) == (201, owners)
    nameless = [{"op": "move", "from": "/metadata/name", "path": "/kind"}]
    refused = await client.patch(f"{WIDGETS}/x", nameless, kind="json-patch+json")
    problem = "the name of the object (x based on URL) was undeterminable: name must be provided"
    assert (refused.status, refused.body["message"]) == (400, problem)
    other = {"kind": "Other", "apiVersion": "v2"}
    assert (await client.patch(f"{WIDGETS}/x/status", other)).body["kind"] == "Widget"
    assert (await client.patch(f"{WIDGETS}/x", other)).status == 422


async def test_apply_to_object_without_managers(client):
    path = f"{NS}/serviceaccounts"
    await client.post(path, object_x(secrets=[{}]))
    applied = {"apiVersion": "v1", "kind": "ServiceAccount", **object_x(automountServiceAccountToken=1)}
    refused = await client.patch(f"{path}/x?fieldManager=f", applied, kind="apply-patch+yaml")
    problem = "failed to create manager for existing fields: failed to convert new object (default/x; /v1, Kind=Service"
    assert refused.body["message"].startswith(problem)


async def test_body_of_other_kind_is_decoded_as_its_kind(client):
    await client.post(f"{APPS}/deployments", object_x(spec=DAEMONS))
    other = {"apiVersion": "v1", "kind": "Pod", **object_x(spec={"containers": 1})}
    for path in ("scale", "status"):
        refused = (await client.put(f"{APPS}/deployments/x/{path}", other)).body["message"]
        assert refused.endswith(
            "cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container"
        )
    scale = {"apiVersion": "extensions/v1beta1", "kind": "Scale", **object_x(spec={"replicas": 1})}
    refused = await client.put(f"{APPS}/deployments/x/scale", scale)
    assert refused.body["message"] == (
        "the API version in the data (extensions/v1beta1) does not match the expected API version (autoscaling/v1)"
    )


async def test_v1beta1_evictions_are_accepted(client):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.post(f"{NS}/pods", object_x(spec={"containers": [{"name": "c", "image": "i"}]}))
    eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", **object_x()}
    assert (await client.post(f"{NS}/pods/x/eviction", eviction)).status == 201


@pytest.mark.parametrize("subresource", ["resize", "ephemeralcontainers"])
async def test_changed_then_reset_field_is_owned(client, subresource):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.post(f"{NS}/pods", object_x(spec={"containers": [{"name": "c", "image": "i"}]}))
    patched = await client.patch(f"{NS}/pods/x/{subresource}", {"spec": {"nodeSelector": {"a": "b"}}})
    owned = patched.body["metadata"]["managedFields"][-1]
    assert (owned["fieldsV1"], owned["subresource"]) == ({"f:spec": {"f:nodeSelector": {}}}, subresource)
    assert "nodeSelector" not in patched.body["spec"]


RULE = {"operations": ["CREATE"], "apiGroups": ["a.b"], "apiVersions": ["v1"], "resources": ["x"]}


async def test_status_update_keeps_metadata(client):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}
    await client.post(path, object_x(spec=spec))
    sent = {"labels": {"a": "b"}, "ownerReferences": [], "deletionTimestamp": ENDING["deletionTimestamp"]}
    patched = await client.patch(f"{path}/x/status", {"metadata": sent, "status": {"observedGeneration": 1}})
    assert (patched.status, patched.body["status"]) == (200, {"observedGeneration": 1})
    assert not patched.body["metadata"].keys() & sent.keys()


@pytest.mark.parametrize("kind", ["flowschemas", "widgets"])
async def test_status_update_owns_no_metadata(client, kind):
    await define(client, definition(version("v1", subresources={"status": {}})))
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas" if kind == "flowschemas" else WIDGETS
    spec = {"priorityLevelConfiguration": {"name": "global-default"}} if kind == "flowschemas" else {}
    types = {} if kind == "flowschemas" else {"apiVersion": "example.com/v1", "kind": "Widget"}
    created = (await client.post(path, {**types, "metadata": {"generateName": "g-"}, "spec": spec})).body
    name = created["metadata"]["name"]
    current = (await client.get(f"{path}/{name}")).body
    changed = current | {"metadata": current["metadata"] | {"generateName": "h-"}}
    updated = await client.put(f"{path}/{name}/status?fieldManager=other", changed)
    entries = updated.body["metadata"]["managedFields"]
    owners = [entry["manager"] for entry in entries if "f:metadata" in entry["fieldsV1"]]
    assert (updated.status, len(owners), "other" in owners) == (200, 1, False)


async def test_event_that_a_patch_replaces_by_another_kind_is_one_of_the_stored_group(client):
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "type": "Normal",
    }
    await client.post(
        path, object_x(eventTime="2024-01-01T00:00:00.000000Z", regarding={"namespace": "default"}, **event)
    )
    patch = [{"op": "replace", "path": "", "value": {"kind": "x"}}]
    refused = await client.patch(f"{path}/x", patch, kind="json-patch+json")
    assert 'no kind "x" is registered for the internal version of group "" in' in refused.body["message"]


async def test_template_with_null_fields_is_refused(client):
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    refused = await client.post(path, object_x(spec={"metadata": {"uid": "u", "finalizers": []}, "spec": {}}))
    causes = [cause["field"] for cause in refused.body["details"]["causes"]]
    assert causes == ["spec.metadata.uID", "spec.metadata.finalizers"]


async def test_update_reports_object_errors_before_change_errors(client):
    path = "/apis/storage.k8s.io/v1/storageclasses"
    await client.post(path, object_x(provisioner="p"))
    changed = {
        "metadata": {"creationTimestamp": None, "deletionGracePeriodSeconds": 3},
        "reclaimPolicy": "A_b",
    }
    refused = await client.patch(f"{path}/x", changed)
    causes = [cause["field"] for cause in refused.body["details"]["causes"]]
    seconds = "metadata.deletionGracePeriodSeconds"
    assert causes == [seconds, "reclaimPolicy", "reclaimPolicy"]


async def test_slice_ports_are_validated_before_endpoints(client):
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    slice_ = {"addressType": "IPv4", "endpoints": [{"addresses": ["-"]}], "ports": [{"protocol": "x"}]}
    refused = await client.post(path, object_x(**slice_))
    causes = [cause["field"] for cause in refused.body["details"]["causes"]]
    assert causes == ["ports[0].protocol", "endpoints[0].addresses[0]"]


async def test_device_class_accepts_any_generate_name(client):
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    await client.post(path, object_x(spec={}))
    assert (await client.patch(f"{path}/x", {"metadata": {"generateName": "ä"}})).status == 200


async def test_flex_volume_is_allowed_with_other_source(client):
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    both = spec | {"flexVolume": {"driver": "a/b"}}
    created = await client.post("/api/v1/persistentvolumes", object_x(spec=both))
    assert (created.status, {"hostPath", "flexVolume"} <= created.body["spec"].keys()) == (201, True)


async def test_addresses_of_wrong_family_are_reported_together(client):
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    slice_ = {"addressType": "IPv4", "endpoints": [{"addresses": ["2001:db8::1"]}]}
    refused = await client.post(path, object_x(**slice_))
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["endpoints[0].addresses"]


async def test_pod_status_ignores_deletion_timestamp(client):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.post(f"{NS}/pods", object_x(spec={"containers": [{"name": "c", "image": "i"}]}))
    ending = {"metadata": {"deletionTimestamp": ENDING["deletionTimestamp"]}}
    patched = await client.patch(f"{NS}/pods/x/status", ending)
    assert (patched.status, "deletionTimestamp" in patched.body["metadata"]) == (200, False)


async def test_status_update_does_not_own_metadata(client):
    await client.post(CLAIMS, object_x())
    patched = await client.patch(
        f"{CLAIMS}/x/status", {"metadata": {"generateName": "y-", "labels": {"a": "b"}}}
    )
    assert (patched.status, patched.body["metadata"].get("managedFields")) == (200, None)


async def test_empty_managed_fields_do_not_reset_custom_objects(client):
    await define(client, definition())
    await client.post(WIDGETS, WIDGET)
    for entries, left in (([], 1), (None, 1), ([{}], 0)):
        patched = await client.patch(f"{WIDGETS}/x", {"metadata": {"managedFields": entries}})
        assert len(patched.body["metadata"].get("managedFields", ())) == left


async def test_refused_local_volume_needs_no_affinity(client):
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "local": {"path": "/x"}}
    for more, field in (({}, "spec.nodeAffinity"), ({"nfs": {"server": "s", "path": "/"}}, "spec.local")):
        refused = await client.post("/api/v1/persistentvolumes", object_x(spec=spec | more))
        assert [cause["field"] for cause in refused.body["details"]["causes"]] == [field]


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u1"}
OTHER, BLOCKING = OWNER | {"uid": "u2"}, OWNER | {"blockOwnerDeletion": True}


@pytest.mark.parametrize(
    ("method", "media_type", "when"),
    [
        ("POST", "json", ""),
        ("PUT", "json", ""),
        ("PATCH", "merge-patch+json", " after mutating admission happens"),
    ],
)
async def test_duplicate_owner_references_are_reported_once(client, method, media_type, when):
    path = "/api/v1/namespaces/default/configmaps"
    if method != "POST":
        await client.post(path, {"metadata": {"name": "owned"}})
        path += "/owned"
    references = [OWNER, OTHER, OWNER, BLOCKING, OTHER]
    sent = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "owned", "ownerReferences": references},
    }
    answer = await client.send(method, path, sent, Content_Type=f"application/{media_type}")
    assert answer.status in (200, 201), answer.body
    assert answer.body["metadata"]["ownerReferences"] == [OWNER, OTHER, BLOCKING]
    warning = answer.headers["Warning"]
    assert warning.startswith(f'299 - ".metadata.ownerReferences contains duplicate entries{when}; API')
    assert warning.endswith('duplicate UID(s) observed: u1, u2"')


async def test_core_group_may_be_written_with_slash(client):
    sent = {"apiVersion": "/v1", "kind": "ConfigMap", "metadata": {"name": "slash"}}
    answer = await client.post("/api/v1/namespaces/default/configmaps", sent)
    assert (answer.status, answer.body["apiVersion"]) == (201, "v1")


async def test_oversized_object_is_stored_without_managed_fields(client):
    """As upstream: by create, update and patch, but not by apply."""
    path, key = f"{NS}/configmaps", f"a-key-that-is-in-the-data-and-in-the-managed-fields-{'x' * 24}"
    data = {f"{key}-{number}": "A" for number in range(9999)}
    created = await client.post(path, {"metadata": {"name": "big"}, "data": data})
    assert (created.status, "managedFields" in created.body["metadata"]) == (201, False)
    patched = await client.patch(f"{path}/big", {"data": {"more": "x"}})
    assert (patched.status, "managedFields" in patched.body["metadata"]) == (200, False)
    replaced = await client.put(f"{path}/big", {"metadata": {"name": "big"}, "data": data})
    assert (replaced.status, "managedFields" in replaced.body["metadata"]) == (200, False)
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": data}
    refused = await client.patch(f"{path}/big?fieldManager=m&force=true", applied, kind="apply-patch+yaml")
    assert refused.status == 413, refused.body
