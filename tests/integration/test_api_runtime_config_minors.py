"""`--runtime-config` of older minor releases: the versions that are off by default there, and what is not served of them."""

import re

import orjson
import pytest

from mockube.apimachinery.schema import minors
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.kinds.resource_config import not_served, read_overrides, read_pairs
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.component_base.clock import RealClock
from tests.support.server import apiserver
from tests.support.server.pod_certificates import authority

PROTOBUF = "application/vnd.kubernetes.protobuf"
RULES = {
    "resourceRules": [
        {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    ]
}
MUTATION = {
    "patchType": "ApplyConfiguration",
    "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"},
}
REQUESTS = {"requests": [{"name": "r", "deviceClassName": "c"}]}
EXACT = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}
SPECS = {
    "clustertrustbundles": {"spec": {"trustBundle": authority(RealClock().now())}},
    "storageversionmigrations": {"spec": {"resource": {"group": "", "resource": "secrets"}}},
    "ipaddresses": {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}},
    "servicecidrs": {"spec": {"cidrs": ["10.8.0.0/24"]}},
    "volumeattributesclasses": {"driverName": "d.example", "parameters": {"a": "b"}},
    "validatingadmissionpolicies": {
        "spec": {"matchConstraints": RULES, "validations": [{"expression": "true"}], "failurePolicy": "Ignore"}
    },
    "validatingadmissionpolicybindings": {"spec": {"policyName": "x", "validationActions": ["Deny"]}},
    "mutatingadmissionpolicies": {
        "spec": {"matchConstraints": RULES, "mutations": [MUTATION], "reinvocationPolicy": "Never"}
    },
    "mutatingadmissionpolicybindings": {"spec": {"policyName": "x"}},
    "deviceclasses": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    "resourceclaims": {"spec": {"devices": EXACT}},
    "resourceclaimtemplates": {"spec": {"spec": {"devices": EXACT}}},
    "resourceslices": {
        "spec": {
            "driver": "d.example", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d"}],
        }
    },
}  # fmt: skip
FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
"""Its beta version is on by default in the older minors that have it."""
NAMES = {"ipaddresses": "10.0.0.77"}


def overrides(minor, text="api/all=true"):
    return read_overrides(read_pairs(text), minor)


def optional_rows(minor):
    """Return the rows of alpha and beta versions that the minor serves with all of its APIs."""
    rows = [kind.resource for kind in kinds_of(minor, overrides(minor)).all]
    return [row for row in rows if re.search("alpha|beta", row.version) and row.group != FLOW_CONTROL]


def body_of(row):
    body = {"apiVersion": row.api_version, "kind": row.kind, "metadata": {"name": NAMES.get(row.name, "a")}}
    spec = orjson.loads(orjson.dumps(SPECS[row.name]))
    if row.version == "v1beta1" and row.group == "resource.k8s.io":
        if row.name == "resourceclaims":
            spec["spec"]["devices"] = REQUESTS
        elif row.name == "resourceclaimtemplates":
            spec["spec"]["spec"]["devices"] = REQUESTS
        elif row.name == "resourceslices":
            spec["spec"]["devices"] = [{"name": "d", "basic": {}}]
    return body | spec


async def use(client, row):
    """Create, read, watch, apply and delete an object in a version."""
    namespace = "/namespaces/default" if row.namespaced else ""
    folder, body = f"/apis/{row.api_version}{namespace}/{row.name}", body_of(row)
    path = f"{folder}/{body['metadata']['name']}"
    created = await client.post(folder, body)
    assert created.status == 201, (row, created.body)
    assert (created.body["apiVersion"], created.body["kind"]) == (row.api_version, row.kind)
    assert (await client.get(path)).body == created.body
    encoded = await client.get(path, Accept=PROTOBUF)
    assert (encoded.status, row.api_version.encode() in encoded.data) == (200, True)
    items = (await client.get(folder)).body["items"]
    assert created.body["metadata"]["uid"] in [item["metadata"]["uid"] for item in items]
    applied = body | {"metadata": body["metadata"] | {"labels": {"x": "y"}}}
    answer = await client.patch(f"{path}?fieldManager=m&force=true", applied, kind="apply-patch+yaml")
    assert (answer.status, answer.body["metadata"]["labels"]) == (200, {"x": "y"}), (row, answer.body)
    assert {entry["apiVersion"] for entry in answer.body["metadata"]["managedFields"]} == {row.api_version}
    async with client.watch(
        f"{folder}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3D{body['metadata']['name']}"
    ) as events:
        assert (await anext(events))["object"]["apiVersion"] == row.api_version
    assert (await client.delete(path)).status == 200
    await client.patch(path, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("minor", minors.MINORS)
async def test_all_apis_of_minor_are_served(minor):
    flags = f"--kubernetes-version={minor}", "--runtime-config=api/all=true"
    async with apiserver.running(*flags) as client:
        for row in optional_rows(minor):
            await use(client, row)
        groups = (await client.get("/apis")).body["groups"]
        discovered = {version["groupVersion"] for group in groups for version in group["versions"]}
        assert {row.api_version for row in optional_rows(minor)} <= discovered
        for path in ("/openapi/v2", "/openapi/v3"):
            assert (await client.get(path)).status == 200
        for row in optional_rows(minor):
            schemas = (await client.get(f"/openapi/v3/apis/{row.api_version}")).body["components"]["schemas"]
            assert any(name.endswith(f"{row.version}.{row.kind}") for name in schemas), row


@pytest.mark.parametrize("minor", minors.MINORS)
@pytest.mark.parametrize("key", ["api/all", "api/beta", "api/alpha", "api/ga"])
def test_groups_of_versions_are_accepted_and_what_is_not_served_is_named(minor, key):
    config = parse([f"--kubernetes-version={minor}", f"--runtime-config={key}=true"], {})
    named = {flag.split("=")[1] for flag in config.ignored_flags() if flag.startswith("--runtime-config")}
    matches = {"api/all": "", "api/beta": "beta", "api/alpha": "alpha", "api/ga": "none"}[key]
    assert named == {"/".join(name) for name in not_served(minor) if matches in name[1]}


@pytest.mark.parametrize("minor", minors.MINORS)
def test_resources_that_are_not_served_are_not_served(minor):
    served = {(row.group, row.version, row.name) for row in optional_rows(minor)}
    assert not served & {*not_served(minor)}


@pytest.mark.parametrize(
    ("minor", "setting", "problem"),
    [
        ("1.33", "resource.k8s.io/v1beta1=true", ""),
        ("1.33", "storage.k8s.io/v1beta1/volumeattributesclasses=true", ""),
        ("1.33", "api/all=true,resource.k8s.io/v1alpha3=false", ""),
        ("1.33", "resource.k8s.io/v1alpha3=true", "resource.k8s.io/v1alpha3/devicetaintrules is not supported"),
        ("1.30", "resource.k8s.io/v1alpha2/resourceclaims=true", "v1alpha2/resourceclaims is not supported"),
        ("1.36", "resource.k8s.io/v1alpha2=true", "resource.k8s.io/v1alpha2 that has not been registered"),
    ],
)  # fmt: skip
def test_resource_named_in_flag_is_served_or_refused(minor, setting, problem, capsys):
    flags = [f"--kubernetes-version={minor}", f"--runtime-config={setting}"]
    if not problem:
        parse(flags, {})
        return
    with pytest.raises(SystemExit):
        parse(flags, {})
    assert problem in capsys.readouterr().err


async def test_beta_of_older_minor_is_stored_as_itself():
    """As upstream, whose storage version was the beta version before there was a stable one."""
    flags = "--kubernetes-version=1.33", "--runtime-config=storage.k8s.io/v1alpha1=true"
    async with apiserver.running(*flags) as client:
        rows = {
            row.api_version: row for row in optional_rows("1.33") if row.name == "volumeattributesclasses"
        }
        folder = "/apis/storage.k8s.io/v1alpha1/volumeattributesclasses"
        assert (await client.post(folder, body_of(rows["storage.k8s.io/v1alpha1"]))).status == 201
        (row,) = (row for row in rows.values() if row.storage_version is None)
        stored = await client.server.registry.get(row, "", "a")
        assert b'"apiVersion":"storage.k8s.io/v1beta1"' in stored.value
        assert (await client.get(folder.replace("v1alpha1", "v1beta1"))).status == 404
