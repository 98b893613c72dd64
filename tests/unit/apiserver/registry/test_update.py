"""An update: what is stored in place of an object, and when it is refused."""

import orjson
import pytest

from mockube.etcd.kv import Put
from tests.support.server.custom_kinds import HOOKS_V1, HOOKS_V2, define_hooks, hook
from tests.support.server.fake_admission import (
    Interfering,
    Labelling,
    Recording,
    Refusing,
    Setting,
    registry_with,
)
from tests.support.server.memory_api import CORE, PODS

CONFIG_MAPS = f"{CORE}/configmaps"
ONE = f"{CONFIG_MAPS}/a"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"
AUTOSCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
CLAIM = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"
SERVICES = f"{CORE}/services"


def config_map(value="v", **metadata):
    return {"metadata": {"name": "a", **metadata}, "data": {"k": value}}


def deployment(replicas=1):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"metadata": {"name": "d"}, "spec": spec}


@pytest.fixture
async def created(api):
    """The config map that tests update."""
    return (await api.create(CONFIG_MAPS, config_map("old"))).body


@pytest.mark.kills("update without decode", "update without encode", "update without commit")
@pytest.mark.kills("update: commit before encode")
async def test_updated_object_is_stored_and_returned(api, created):
    answer = await api.update(ONE, config_map("new"))
    stored = await api.stored(ONE)
    version = answer.body["metadata"].pop("resourceVersion")
    assert (answer.code, answer.body, stored["data"]) == (200, stored, {"k": "new"})
    assert (
        int(version)
        == (await api.registry.kv.status()).revision
        > int(created["metadata"]["resourceVersion"])
    )


@pytest.mark.kills("update without read_old", "UID of an update is ignored")
async def test_update_with_uid_of_another_object_is_conflict(api, created):
    answer = await api.update(ONE, config_map("new", uid="other"))
    assert answer.code == 409
    assert "Precondition failed: UID in precondition: other, UID in object meta: " in answer.message
    assert (await api.stored(ONE))["data"] == {"k": "old"}


@pytest.mark.kills(
    "update without convert_old", "update: convert_old before read_old", "fields of metadata may change"
)
async def test_update_keeps_uid_and_creation_time(api, created):
    api.registry.clock.advance(60)
    answer = await api.update(ONE, config_map("new", creationTimestamp="2001-01-01T00:00:00Z"))
    metadata = (await api.stored(ONE))["metadata"]
    assert answer.code == 200
    assert [metadata[name] for name in ("uid", "creationTimestamp")] == [
        created["metadata"][name] for name in ("uid", "creationTimestamp")
    ]


@pytest.mark.kills("update without admit", "resourceVersion of an update is ignored")
async def test_update_of_older_version_is_conflict(api, created):
    await api.update(ONE, config_map("newer"))
    answer = await api.update(ONE, config_map("new", resourceVersion=created["metadata"]["resourceVersion"]))
    assert answer.refusal == (
        409,
        (
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
            "please apply your changes to the latest version and try again"
        ),
    )
    assert (await api.stored(ONE))["data"] == {"k": "newer"}


async def test_update_without_version_of_kind_that_needs_one_is_refused(api):
    runtimes = "/apis/node.k8s.io/v1/runtimeclasses"
    tree = {"metadata": {"name": "r"}, "handler": "h"}
    await api.create(runtimes, tree)
    answer = await api.update(f"{runtimes}/r", tree)
    assert answer.code == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.message


async def test_update_is_stored_as_mutating_plugin_changed_it(api, created):
    registry = registry_with(api, Labelling())
    answer = await api.send("PUT", ONE, config_map("new"), registry=registry)
    assert answer.body["metadata"]["labels"] == {"admitted": "yes"}
    assert (await api.stored(ONE))["metadata"]["labels"] == {"admitted": "yes"}


@pytest.mark.kills("update without convert", "update: admit before convert", "update: convert before decode")
async def test_update_in_other_version_is_admitted_and_stored_in_storage_version(api):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50}
    created = await api.create(AUTOSCALERS, {"metadata": {"name": "h"}, "spec": spec})
    recording, tree = Recording(), created.body | {"spec": spec | {"targetCPUUtilizationPercentage": 70}}
    answer = await api.send("PUT", f"{AUTOSCALERS}/h", tree, registry=registry_with(api, recording))
    assert (answer.code, answer.body["spec"]["targetCPUUtilizationPercentage"]) == (200, 70)
    ((_, _, new, old),) = recording.mutated
    stored = await api.stored(f"{AUTOSCALERS}/h")
    assert new["apiVersion"] == old["apiVersion"] == stored["apiVersion"] == "autoscaling/v2"
    assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70


@pytest.mark.kills("update without prepare")
async def test_update_keeps_status_and_counts_generation_of_changed_spec(api):
    await api.create(DEPLOYMENT.rpartition("/")[0], deployment())
    await api.patch(f"{DEPLOYMENT}/status", {"status": {"observedGeneration": 1, "replicas": 1}})
    answer = await api.update(DEPLOYMENT, deployment(replicas=2) | {"status": {"replicas": 9}})
    stored = await api.stored(DEPLOYMENT)
    assert (answer.code, stored["metadata"]["generation"]) == (200, 2)
    assert (stored["spec"]["replicas"], stored["status"]["replicas"]) == (2, 1)


async def test_update_of_status_keeps_spec_and_generation(api):
    await api.create(DEPLOYMENT.rpartition("/")[0], deployment())
    tree = deployment(replicas=5) | {"status": {"replicas": 1, "observedGeneration": 1}}
    answer = await api.update(f"{DEPLOYMENT}/status", tree)
    stored = await api.stored(DEPLOYMENT)
    assert (answer.code, stored["metadata"]["generation"]) == (200, 1)
    assert (stored["spec"]["replicas"], stored["status"]["replicas"]) == (1, 1)


async def test_update_of_status_does_not_count_its_annotations_in_generation(api):
    """An update of the deployment itself would count them."""
    await api.create(DEPLOYMENT.rpartition("/")[0], deployment())
    change = {"metadata": {"annotations": {"a": "b"}}}
    assert (await api.patch(f"{DEPLOYMENT}/status", change)).code == 200
    metadata = (await api.stored(DEPLOYMENT))["metadata"]
    assert (metadata["generation"], metadata["annotations"]) == (1, {"a": "b"})
    await api.patch(DEPLOYMENT, {"metadata": {"annotations": {"a": "c"}}})
    assert (await api.stored(DEPLOYMENT))["metadata"]["generation"] == 2


@pytest.mark.kills("update without allocate")
async def test_service_that_becomes_node_port_gets_port(api):
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    created = (await api.create(SERVICES, service)).body
    answer = await api.update(f"{SERVICES}/s", created | {"spec": created["spec"] | {"type": "NodePort"}})
    assert answer.code == 200, answer.message
    (port,) = (await api.stored(f"{SERVICES}/s"))["spec"]["ports"]
    assert 30000 <= port["nodePort"] <= 32767


@pytest.mark.kills("update: allocate before prepare")
async def test_service_that_is_updated_by_its_manifest_keeps_its_address(api):
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    created = (await api.create(SERVICES, service)).body
    answer = await api.update(f"{SERVICES}/s", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 81}]}})
    assert (answer.code, answer.body["spec"]["ports"][0]["port"]) == (200, 81)
    assert (await api.stored(f"{SERVICES}/s"))["spec"]["clusterIP"] == created["spec"]["clusterIP"]


async def test_port_of_service_that_becomes_internal_is_free(api):
    ports = [{"port": 80, "nodePort": 30001}]
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
    created = (await api.create(SERVICES, service)).body
    answer = await api.update(f"{SERVICES}/s", created | {"spec": created["spec"] | {"type": "ClusterIP"}})
    assert (answer.code, "nodePort" in answer.body["spec"]["ports"][0]) == (200, False)
    second = {"metadata": {"name": "t"}, "spec": {"type": "NodePort", "ports": ports}}
    assert (await api.create(SERVICES, second)).code == 201


@pytest.mark.kills("update: validate before authorize")
async def test_allocation_with_admin_access_is_reported_before_invalid_fields(api):
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    await api.create(CLAIM.rpartition("/")[0], claim)
    result = {"request": "other", "driver": "d.example.com", "pool": "p", "device": "d", "adminAccess": True}
    answer = await api.patch(
        f"{CLAIM}/status", {"status": {"allocation": {"devices": {"results": [result]}}}}
    )
    fields = [cause["field"] for cause in answer.body["details"]["causes"]]
    assert fields[0] == "status.allocation.devices.results[0].adminAccess"
    assert "status.allocation.devices.results[0].request" in fields[1:]


@pytest.mark.kills("update without authorize")
async def test_allocation_with_admin_access_needs_label_of_its_namespace(api):
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    await api.create(
        CLAIM.rpartition("/")[0], {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    )
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d", "adminAccess": True}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    answer = await api.patch(f"{CLAIM}/status", status)
    assert answer.code == 422
    assert (
        "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label"
        in answer.message
    )
    assert "allocation" not in (await api.stored(CLAIM)).get("status", {})


@pytest.mark.kills("update without validate")
async def test_invalid_object_does_not_replace_stored_one(api, created):
    answer = await api.update(ONE, {"metadata": {"name": "a"}, "data": {"a b": "v"}})
    assert answer.code == 422
    assert answer.message.startswith('ConfigMap "a" is invalid: data[a b]: Invalid value: "a b"')
    assert (await api.stored(ONE))["data"] == {"k": "old"}


@pytest.mark.kills("update: admit_validated before validate")
async def test_invalid_update_is_not_shown_to_validating_plugins(api, created):
    recording = Recording()
    tree = {"metadata": {"name": "a"}, "data": {"a b": "v"}}
    answer = await api.send("PUT", ONE, tree, registry=registry_with(api, recording))
    assert (answer.code, len(recording.mutated), recording.validated) == (422, 1, [])


@pytest.mark.kills("update without admit_validated", "error of a plugin is ignored")
async def test_update_that_validating_plugin_refuses_is_not_stored(api, created):
    answer = await api.send("PUT", ONE, config_map("new"), registry=registry_with(api, Refusing()))
    assert answer.refusal == (403, 'configmaps "a" is forbidden: no such writes today')
    assert (await api.stored(ONE))["data"] == {"k": "old"}


@pytest.mark.kills("update: keep_old_times before admit_validated")
async def test_plugin_validates_old_and_new_object_at_version_of_old_one(api, created):
    recording = Recording()
    await api.send("PUT", ONE, config_map("new"), registry=registry_with(api, recording))
    ((_, _, new, old),) = recording.validated
    version = created["metadata"]["resourceVersion"]
    assert new["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"] == version


async def test_update_that_changes_nothing_is_not_stored(api, created):
    before = await api.stored(ONE)
    api.registry.clock.advance(60)
    answer = await api.update(ONE, config_map("old"))
    assert (answer.code, answer.body["metadata"]["resourceVersion"]) == (
        200,
        created["metadata"]["resourceVersion"],
    )
    assert await api.stored(ONE) == before


@pytest.mark.kills("update without keep_old_times", "update: convert_to_store before keep_old_times")
async def test_update_that_admission_undoes_is_not_stored(api):
    registry = registry_with(api, Labelling())
    created = await api.send("POST", CONFIG_MAPS, config_map(labels={"admitted": "yes"}), registry=registry)
    before = await api.stored(ONE)
    api.registry.clock.advance(60)
    answer = await api.send("PUT", ONE, config_map(labels={"admitted": "no"}), registry=registry)
    assert (answer.code, answer.body) == (200, created.body)
    assert await api.stored(ONE) == before


@pytest.mark.kills("update without convert_to_store")
async def test_custom_object_is_stored_in_storage_version(api):
    await define_hooks(api, by_webhook=False)
    created = (await api.create(HOOKS_V2, hook("v2", size=5))).body
    answer = await api.update(f"{HOOKS_V1}/a", hook(size=6) | {"metadata": created["metadata"]})
    assert (answer.code, answer.body["apiVersion"]) == (200, "versions.test/v1")
    stored = await api.stored(f"{HOOKS_V1}/a")
    assert (stored["apiVersion"], stored["spec"]["size"]) == ("versions.test/v2", 6)


@pytest.mark.kills("update without convert_by_webhook", "update: encode before convert_by_webhook")
@pytest.mark.kills(
    "update without convert_old_by_webhook", "update: convert_old_by_webhook before convert_old"
)
async def test_update_in_other_version_is_converted_by_webhook(api):
    await define_hooks(api, by_webhook=True)
    await api.create(HOOKS_V2, hook("v2", endpoint={"host": "old"}, size=5))
    recording = Recording()
    registry = registry_with(api, recording)
    answer = await api.send(
        "PATCH",
        f"{HOOKS_V1}/a",
        {"spec": {"host": "new"}},
        media_type="application/merge-patch+json",
        registry=registry,
    )
    assert (answer.code, answer.body["spec"]) == (200, {"host": "new", "size": 5})
    ((_, _, new, old),) = recording.validated
    assert (old["apiVersion"], old["spec"]["host"], new["spec"]["host"]) == ("versions.test/v1", "old", "new")
    stored = await api.stored(f"{HOOKS_V1}/a")
    assert (stored["apiVersion"], stored["spec"]["endpoint"]["host"]) == ("versions.test/v2", "new")


@pytest.mark.kills("dry run is stored")
async def test_dry_run_of_update_returns_object_and_stores_nothing(api, created):
    answer = await api.update(ONE, config_map("new"), dryRun="All")
    version = created["metadata"]["resourceVersion"]
    assert (answer.code, answer.body["data"], answer.body["metadata"]["resourceVersion"]) == (
        200,
        {"k": "new"},
        version,
    )
    assert (await api.stored(ONE))["data"] == {"k": "old"}


@pytest.mark.kills("write does not compare revisions")
async def test_update_is_repeated_after_write_that_came_between(api, created):
    async def label():
        await api.patch(ONE, {"metadata": {"labels": {"from": "another"}}})

    registry = registry_with(api, Interfering(label), recording := Recording())
    answer = await api.send("PUT", ONE, config_map("new"), registry=registry)
    assert answer.code == 200
    assert [old["metadata"].get("labels") for _, _, _, old in recording.validated] == [
        None,
        {"from": "another"},
    ]


async def test_patch_is_repeated_on_object_that_another_write_changed(api, created):
    async def label():
        await api.patch(ONE, {"metadata": {"labels": {"from": "another"}}})

    registry, kind = registry_with(api, Interfering(label)), "application/merge-patch+json"
    answer = await api.send("PATCH", ONE, {"data": {"k": "new"}}, media_type=kind, registry=registry)
    stored = await api.stored(ONE)
    assert (answer.code, stored["data"]) == (200, {"k": "new"})
    assert stored["metadata"]["labels"] == {"from": "another"}


async def test_update_with_version_is_conflict_after_write_that_came_between(api, created):
    async def label():
        await api.patch(ONE, {"metadata": {"labels": {"from": "another"}}})

    tree = config_map("new", resourceVersion=created["metadata"]["resourceVersion"])
    answer = await api.send("PUT", ONE, tree, registry=registry_with(api, Interfering(label)))
    assert answer.code == 409
    stored = await api.stored(ONE)
    assert (stored["data"], stored["metadata"]["labels"]) == ({"k": "old"}, {"from": "another"})


async def test_update_of_missing_object_is_not_found(api):
    answer = await api.update(ONE, config_map())
    assert answer.refusal == (404, 'configmaps "a" not found')
    assert await api.stored(ONE) is None


@pytest.mark.kills("object of another name is updated")
async def test_update_under_another_name_is_refused(api, created):
    answer = await api.update(ONE, config_map("new") | {"metadata": {"name": "b"}})
    assert answer.refusal == (400, "the name of the object (b) does not match the name on the URL (a)")


@pytest.mark.kills("object of another namespace is written")
async def test_update_in_another_namespace_is_refused(api, created):
    answer = await api.update(ONE, config_map("new", namespace="kube-system"))
    assert answer.refusal == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    assert (await api.stored(ONE))["data"] == {"k": "old"}


@pytest.mark.kills("object of a finished deletion stays")
async def test_update_that_removes_last_finalizer_of_deleted_object_removes_it(api):
    await api.create(CONFIG_MAPS, config_map("old", finalizers=["x.io/y"]))
    await api.delete(ONE)
    assert "deletionTimestamp" in (await api.stored(ONE))["metadata"]
    answer = await api.update(ONE, config_map("old"))
    assert answer.code == 200
    assert await api.stored(ONE) is None


@pytest.mark.kills("object of a finished deletion stays")
async def test_update_that_changes_nothing_removes_deleted_object_that_waits_for_nothing(api):
    """Its last finalizer was removed by what did not know the rule, such as a restored snapshot."""
    await api.create(CONFIG_MAPS, config_map("old", finalizers=["x.io/y"]))
    await api.delete(ONE)
    tree = await api.stored(ONE)
    del tree["metadata"]["finalizers"]
    key = api.registry.layout.object(api.catalog.rows["", "v1", "configmaps"], "default", "a")
    await api.registry.kv.put(Put(key=key, value=orjson.dumps(tree)))
    await api.settle()
    assert (await api.patch(ONE, {})).code == 200
    assert await api.stored(ONE) is None


@pytest.mark.kills("write ends the grace period of a deletion")
async def test_pod_in_its_grace_period_stays_when_its_status_is_written(api):
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 7}
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    await api.delete(f"{PODS}/p")
    assert (await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})).code == 200
    stored = await api.stored(f"{PODS}/p")
    assert (stored["status"]["phase"], stored["metadata"]["deletionGracePeriodSeconds"]) == ("Running", 7)


@pytest.mark.kills("deletion releases no allocations")
async def test_update_that_removes_last_finalizer_of_deleted_service_releases_its_address(api):
    service = {"metadata": {"name": "s"}, "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}}
    finalized = service | {"metadata": {"name": "s", "finalizers": ["x.io/y"]}}
    assert (await api.create(SERVICES, finalized)).code == 201
    await api.delete(f"{SERVICES}/s")
    await api.patch(f"{SERVICES}/s", {"metadata": {"finalizers": None}})
    assert await api.stored(f"{SERVICES}/s") is None
    answer = await api.create(SERVICES, service)
    assert answer.code == 201, answer.message


async def test_update_of_field_whose_gate_is_off_counts_in_generation_of_resource_slice(api):
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}
    created = (await api.create(slices, {"metadata": {"name": "s"}, "spec": spec})).body
    changed = created | {"spec": created["spec"] | {"skipNodeOperations": ["NodePrepareResources"]}}
    answer = await api.update(f"{slices}/s", changed)
    assert answer.code == 200, answer.message
    stored = await api.stored(f"{slices}/s")
    assert (stored["metadata"]["generation"], "skipNodeOperations" in stored["spec"]) == (2, False)


@pytest.mark.kills("namespace that admission changes is stored")
async def test_update_that_plugin_moves_to_another_namespace_is_refused(api, created):
    registry = registry_with(api, Setting(namespace="kube-system"))
    answer = await api.send("PUT", ONE, config_map("new"), registry=registry)
    assert answer.refusal == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    assert (await api.stored(ONE))["data"] == {"k": "old"}


@pytest.mark.kills("UID of an update that creates is ignored")
async def test_update_with_uid_of_missing_object_is_conflict(api):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
    answer = await api.update(path, {"metadata": {"name": "a", "uid": "gone"}, "spec": {}})
    assert answer.code == 409
    assert answer.message.endswith("Precondition failed: UID in precondition: gone, UID in object meta: ")
    assert await api.stored(path) is None
