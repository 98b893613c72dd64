"""Error messages that quote the request, each as a real kube-apiserver 1.36 worded it."""

import orjson
import pytest

from tests.support.server import apiserver

APPS, BATCH = "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
SERVICES = "/api/v1/namespaces/default/services"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def pods(labels=None, **spec):
    return {
        "metadata": {"labels": {"app": "web"} if labels is None else labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}], **spec},
    }


def object_x(spec):
    return {"metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("path", "spec", "message"),
    [
        pytest.param(
            f"{APPS}/daemonsets",
            {"selector": {"matchLabels": {"app": "web"}}, "template": pods({})},
            'DaemonSet.apps "x" is invalid: spec.template.metadata.labels: Invalid value: {}: '
            "`selector` does not match template `labels`",
            id="an empty map",
        ),
        pytest.param(
            f"{APPS}/daemonsets",
            {"selector": {"matchLabels": {}}, "template": pods()},
            'DaemonSet.apps "x" is invalid: spec.selector: Invalid value: {}: empty selector is invalid for daemonset',
            id="an empty map in a struct of the API",
        ),
        pytest.param(
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            {"rules": []},
            'Ingress.networking.k8s.io "x" is invalid: spec: Invalid value: []: '
            "either `defaultBackend` or `rules` must be specified",
            id="an empty list",
        ),
        pytest.param(
            "/api/v1/persistentvolumes",
            {"accessModes": ["ReadWriteOnce"], "capacity": {}, "hostPath": {"path": "/x"}},
            'PersistentVolume "x" is invalid: [spec.capacity: Required value, spec.capacity: '
            'Unsupported value: {}: supported values: "storage"]',
            id="an empty map where one value is needed",
        ),
        pytest.param(
            "/apis/storage.k8s.io/v1/csidrivers",
            {"serviceAccountTokenInSecrets": True},
            'CSIDriver.storage.k8s.io "x" is invalid: spec.serviceAccountTokenInSecrets: Invalid value: true: '
            "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
            id="tokens in secrets without requests for tokens",
        ),
        pytest.param(
            AUTOSCALERS,
            {"maxReplicas": 2, "scaleTargetRef": TARGET, "behavior": {"scaleDown": {"policies": []}}},
            'HorizontalPodAutoscaler.autoscaling "x" is invalid: spec.behavior.scaleDown.policies: '
            "Required value: must specify at least one Policy",
            id="no policies are not the same as default policies",
        ),
        pytest.param(
            AUTOSCALERS,
            {
                "maxReplicas": 2,
                "scaleTargetRef": TARGET,
                "metrics": [
                    {
                        "type": "Pods",
                        "pods": {
                            "metric": {"name": "m"},
                            "target": {"type": "AverageValue", "averageValue": "-1"},
                        },
                    }
                ],
            },
            'HorizontalPodAutoscaler.autoscaling "x" is invalid: spec.metrics[0].pods.target.averageValue: '
            'Invalid value: "-1": must be positive',
            id="an average below zero",
        ),
        pytest.param(
            "/api/v1/namespaces/default/pods",
            pods(nodeName="a/b")["spec"],
            'Pod "x" is invalid: spec.nodeName: Invalid value: "a/b": a lowercase RFC 1123 subdomain must consist of '
            "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            id="a node's name that no node can have",
        ),
    ],
)
async def test_invalid_new_object_is_refused(client, path, spec, message):
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    refused = await client.post(path, object_x(spec))
    assert (refused.status, refused.body["message"]) == (422, message)


async def test_definition_without_versions_keeps_absent_or_empty_list(client):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for given, shown in (({}, "null"), ({"versions": []}, "[]")):
        refused = await client.post(path, object_x({"group": "example.com", **given}))
        expected = (
            f"spec.versions: Invalid value: {shown}: must have exactly one version marked as storage version"
        )
        assert expected in refused.body["message"]


async def test_empty_list_left_by_patch_is_shown(client):
    resources = {"requests": {"storage": "1Gi"}}
    await client.post(CLAIMS, object_x({"accessModes": ["ReadWriteOnce"], "resources": resources}))
    refused = await client.send("PATCH", f"{CLAIMS}/x", {"spec": {"accessModes": []}}, Content_Type=STRATEGIC)
    assert refused.status == 422
    assert '\n+ "AccessModes": [],\n' in refused.body["message"]


@pytest.mark.parametrize(
    ("patch", "shown", "problem"),
    [
        (
            b'{"metadata":{"generation":2.0}}',
            '"generation":2.0,',
            "json: cannot unmarshal number 2.0 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            rb'{"kind":"\u00e4<"}',
            r'"kind":"\u00e4\u003c"',
            'no kind "ä<" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            b'{"apiVersion":"x/v1"}',
            '"ports":[{"protocol":"TCP","port":80,"targetPort":80}],"clusterIP":',
            'no kind "Service" is registered for version "x/v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
async def test_refused_patch_shows_object_as_written(client, patch, shown, problem):
    await client.post(SERVICES, object_x({"ports": [{"port": 80}]}))
    refused = await client.send("PATCH", f"{SERVICES}/x", patch, Content_Type=MERGE)
    message = refused.body["details"]["causes"][0]["message"]
    assert orjson.dumps(shown)[1:-1].decode() in message
    assert message.endswith(f": {problem}")


@pytest.mark.parametrize(
    ("path", "spec", "place"),
    [
        (
            f"{BATCH}/jobs",
            {"template": pods(restartPolicy="Never"), "podFailurePolicy": {"rules": []}},
            ("podFailurePolicy", "rules"),
        ),
        (
            f"{APPS}/deployments",
            {
                "selector": {"matchLabels": {"app": "web"}},
                "template": pods(volumes=[{"name": "p", "projected": {"sources": []}}]),
            },
            ("template", "spec", "volumes", 0, "projected", "sources"),
        ),
    ],
)
async def test_always_present_list_is_null_when_empty(client, path, spec, place):
    created = await client.post(path, object_x(spec))
    again = await client.put(f"{path}/x", created.body | {"spec": created.body["spec"]})
    dry = await client.post(f"{path}?dryRun=All", object_x(spec) | {"metadata": {"name": "y"}})
    for answer in (created, again, dry):
        value = answer.body["spec"]
        for step in place:
            value = value[step]
        assert value is None
    assert again.body["metadata"]["resourceVersion"] == created.body["metadata"]["resourceVersion"]


async def test_binding_errors_list_metadata_last(client):
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    await client.post(path, {"metadata": {"name": "x"}, "roleRef": role})
    patch = {"roleRef": {"name": "edit"}, "metadata": {"deletionGracePeriodSeconds": 3}}
    refused = await client.send("PATCH", f"{path}/x", patch, Content_Type=MERGE)
    fields = [cause["field"] for cause in refused.body["details"]["causes"]]
    assert fields == ["metadata.deletionGracePeriodSeconds", "roleRef"]


@pytest.mark.parametrize(
    ("query", "key"), [("", "/registry/leases/default/x"), ("?dryRun=All", "/leases/default/x")]
)
async def test_uid_precondition_error_names_key_or_dry_run_suffix(client, query, key):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    created = await client.post(path, {"metadata": {"name": "x"}})
    refused = await client.put(f"{path}/x{query}", {"metadata": {"name": "x", "uid": "y"}})
    assert refused.body["message"] == (
        f'Operation cannot be fulfilled on leases.coordination.k8s.io "x": StorageError: invalid object, Code: 4, '
        f"Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: y, "
        f"UID in object meta: {created.body['metadata']['uid']}"
    )


async def test_namespace_precondition_errors_have_own_messages(client):
    created = await client.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    for name, field, shown in (("UID", "uid", "y"), ("ResourceVersion", "resourceVersion", "1")):
        refused = await client.send("DELETE", "/api/v1/namespaces/x", {"preconditions": {field: shown}})
        assert refused.body["message"] == (
            f'Operation cannot be fulfilled on namespaces "x": Precondition failed: {name} in precondition: {shown}, '
            f"{name} in object meta: {created.body['metadata'][field]}"
        )


UNREADABLE = "ignoreStoreReadErrorWithClusterBreakingPotential"


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (
            {},
            409,
            (
                'configmaps "x": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/x, ResourceVersion: 0, '
                "AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage"
            ),
        ),
        (
            {"gracePeriodSeconds": 1, "propagationPolicy": "Orphan"},
            422,
            (
                f"[{UNREADABLE}: Invalid value: true: cannot be set together with .propagationPolicy, "
                f"{UNREADABLE}: Invalid value: true: cannot be set together with .gracePeriodSeconds]"
            ),
        ),
    ],
)
async def test_readable_object_is_not_deleted_by_a_deletion_of_unreadable_ones(client, options, code, says):
    path = "/api/v1/namespaces/default/configmaps"
    await client.post(path, {"metadata": {"name": "x"}})
    refused = await client.send("DELETE", f"{path}/x", {UNREADABLE: True, **options})
    assert (refused.status, refused.body["message"].endswith(says)) == (code, True), refused.body
    assert (await client.send("DELETE", f"{path}/x?{UNREADABLE}=true&dryRun=All")).status == 409
    refused = await client.send("DELETE", path, {UNREADABLE: True})
    assert (
        "is not allowed with DELETECOLLECTION, try again after removing the option" in refused.body["message"]
    )
    assert (await client.get(f"{path}/x")).status == 200


async def test_deletion_of_unreadable_objects_is_a_normal_deletion_until_1_36():
    path = "/api/v1/namespaces/default/configmaps"
    async with apiserver.running("--kubernetes-version=1.36") as client:
        await client.post(path, {"metadata": {"name": "x"}})
        assert (await client.send("DELETE", f"{path}/x", {UNREADABLE: True})).status == 200


@pytest.mark.parametrize(("minor", "begin"), [("1.36", "Precondition"), ("1.37", "precondition")])
async def test_definition_precondition_errors_have_own_messages(minor, begin):
    definition = {
        "metadata": {"name": "ws.a.b"},
        "spec": {
            "group": "a.b",
            "scope": "Cluster",
            "names": {"plural": "ws", "kind": "W"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    async with apiserver.running(f"--kubernetes-version={minor}") as client:
        created = await client.post(path, definition)
        refused = await client.send("DELETE", f"{path}/ws.a.b", {"preconditions": {"uid": "y"}})
    assert refused.body["message"] == (
        f'Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io "ws.a.b": {begin} failed: '
        f"UID in precondition: y, UID in object meta: {created.body['metadata']['uid']}"
    )


async def test_expired_pod_accepts_other_deletion_policy(client):
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    path = "/api/v1/namespaces/default/pods"
    created = await client.post(
        path, object_x(pods()["spec"]) | {"metadata": {"name": "x", "finalizers": ["a/b"]}}
    )
    assert created.status == 201
    await client.send("DELETE", f"{path}/x")
    answer = await client.send("DELETE", f"{path}/x", {"propagationPolicy": "Foreground"})
    assert answer.body["metadata"]["finalizers"] == ["a/b", "foregroundDeletion"]


async def test_scale_is_validated_without_metadata_and_patch_shows_managers(client):
    path = f"{APPS}/deployments"
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pods()}
    await client.post(path, object_x(spec))
    wrong = {"metadata": {"generation": -1}, "spec": {"replicas": -1}}
    refused = await client.send("PATCH", f"{path}/x/scale", wrong, Content_Type=MERGE)
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["spec.replicas"]
    refused = await client.send("PATCH", f"{path}/x/scale", {"kind": "Y"}, Content_Type=MERGE)
    assert r'"managedFields\":[{' in refused.body["details"]["causes"][0]["message"]


async def test_claim_template_cannot_set_deletion_grace_period(client):
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    refused = await client.post(path, object_x({"metadata": {"deletionGracePeriodSeconds": 0}}))
    assert refused.body["details"]["causes"][0]["field"] == "spec.metadata.deletionGracePeriodSeconds"


async def test_aggregation_rule_selector_errors_are_reported_twice(client):
    path, selector = (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "aggregationRule.clusterRoleSelectors[0]",
    )
    values = {"key": "a", "operator": "In", "values": ["-"]}
    rule = {"clusterRoleSelectors": [{"matchExpressions": [values]}]}
    refused = await client.post(path, {"metadata": {"name": "x"}, "aggregationRule": rule})
    causes = [(cause["field"], cause["message"]) for cause in refused.body["details"]["causes"]]
    assert [field for field, _ in causes] == [f"{selector}.matchExpressions[0].values[0]", selector]
    assert causes[1][1] == "Invalid value: null: invalid label selector."


@pytest.mark.parametrize(
    ("name", "types"), [("map", '"atomic", "granular"'), ("list", '"atomic", "set", "map"')]
)
async def test_list_type_and_map_type_are_not_empty(client, name, types):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    kind = {"map": "object", "list": "array"}[name]
    schema = {
        "type": "object",
        "properties": {"m": {"type": kind, f"x-kubernetes-{name}-type": "", "items": {"type": "string"}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    refused = await client.post(path, {"metadata": {"name": "things.example.com"}, "spec": spec})
    assert (
        f'x-kubernetes-{name}-type: Unsupported value: "": supported values: {types}'
        in refused.body["message"]
    )


async def test_token_request_has_manager_and_keeps_labels(client):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await client.post(accounts, {"metadata": {"name": "x"}})
    asked = {"metadata": {"labels": {"a": "b"}}, "spec": {"audiences": ["y"]}}
    created = (await client.post(f"{accounts}/x/token?fieldManager=q", asked)).body["metadata"]
    (entry,) = created["managedFields"]
    assert (entry["manager"], entry["subresource"], created["labels"]) == ("q", "token", {"a": "b"})
    assert entry["fieldsV1"]["f:spec"] == {"f:audiences": {}, "f:expirationSeconds": {}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"a: *x", "error encoding patch: yaml: unknown anchor 'x' referenced"),
        (
            b"{a: *x}",
            "error decoding patch: error converting YAML to JSON: yaml: unknown anchor 'x' referenced",
        ),
        (
            b" {",
            "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content",
        ),
    ],
)
async def test_applied_text_that_starts_like_json_is_decoded_later(client, body, message):
    path = "/api/v1/namespaces/default/configmaps/x?fieldManager=m"
    answer = await client.send("PATCH", path, body, Content_Type="application/apply-patch+yaml")
    assert (answer.status, answer.body["message"]) == (400, message)
