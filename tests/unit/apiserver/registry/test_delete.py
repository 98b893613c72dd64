"""A deletion: what is removed, what is only marked, and when it is refused."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.registry.request_context import Operation
from mockube.etcd.kv import Delete, Put
from tests.support.server.custom_kinds import HOOKS_V1, HOOKS_V2, define_hooks, hook
from tests.support.server.fake_admission import Interfering, Recording, Refusing, registry_with
from tests.support.server.memory_api import ALICE, CORE, PODS, running_api

CONFIG_MAPS = f"{CORE}/configmaps"
ONE = f"{CONFIG_MAPS}/a"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def config_map(name="a", **metadata):
    return {"metadata": {"name": name, **metadata}}


@pytest.fixture
async def created(api):
    """The config map that tests delete."""
    return (await api.create(CONFIG_MAPS, config_map())).body


@pytest.mark.kills("delete without decode", "delete without encode", "delete without commit")
async def test_deleted_object_is_removed_and_answer_names_it(api, created):
    answer = await api.delete(ONE)
    assert (answer.code, answer.body["status"]) == (200, "Success")
    assert answer.body["details"] == {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    assert await api.stored(ONE) is None


async def test_delete_of_missing_object_is_not_found(api):
    assert (await api.delete(ONE)).refusal == (404, 'configmaps "a" not found')


@pytest.mark.kills("delete without check", "preconditions of a deletion are ignored")
@pytest.mark.parametrize(
    ("precondition", "problem"),
    [
        ({"uid": "other"}, "the UID in the precondition (other) does not match the UID in record"),
        (
            {"resourceVersion": "1"},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion",
        ),
    ],
)
async def test_delete_with_precondition_that_fails_is_conflict(api, created, precondition, problem):
    answer = await api.delete(ONE, {"preconditions": precondition})
    assert answer.code == 409
    assert problem in answer.message
    assert await api.stored(ONE) is not None


@pytest.mark.kills("delete: admit before check")
async def test_delete_with_precondition_that_fails_is_not_admitted(api, created):
    registry = registry_with(api, recording := Recording())
    answer = await api.send("DELETE", ONE, {"preconditions": {"uid": "other"}}, registry=registry)
    assert (answer.code, recording.mutated, recording.validated) == (409, [], [])


@pytest.mark.kills("delete without mark", "delete: commit before encode", "finalizers are ignored")
async def test_object_with_finalizer_is_only_marked(api):
    await api.create(CONFIG_MAPS, config_map(finalizers=["x.io/y"]))
    answer = await api.delete(ONE)
    metadata = (await api.stored(ONE))["metadata"]
    assert (answer.code, answer.body["metadata"]["deletionTimestamp"]) == (200, "2030-01-01T00:00:00Z")
    assert (metadata["deletionTimestamp"], metadata["finalizers"]) == ("2030-01-01T00:00:00Z", ["x.io/y"])
    assert metadata["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])]
)
@pytest.mark.kills("propagation policy is ignored")
async def test_propagation_policy_adds_finalizer_and_marks_object(api, created, policy, finalizers):
    answer = await api.delete(ONE, {"propagationPolicy": policy})
    metadata = (await api.stored(ONE))["metadata"]
    assert (answer.code, metadata["finalizers"]) == (200, finalizers)
    assert "deletionTimestamp" in metadata


async def test_pod_on_node_is_marked_with_its_grace_period(api):
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 7}
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    answer = await api.delete(f"{PODS}/p")
    metadata = (await api.stored(f"{PODS}/p"))["metadata"]
    assert (answer.code, metadata["deletionGracePeriodSeconds"]) == (200, 7)
    assert metadata["deletionTimestamp"] == "2030-01-01T00:00:07Z"
    await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert await api.stored(f"{PODS}/p") is None


@pytest.mark.kills("deletion lengthens a grace period")
async def test_second_deletion_shortens_grace_period_and_does_not_lengthen_it(api):
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 7}
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    await api.delete(f"{PODS}/p")
    ends = []
    for seconds in (30, 5):
        await api.delete(f"{PODS}/p", {"gracePeriodSeconds": seconds})
        metadata = (await api.stored(f"{PODS}/p"))["metadata"]
        ends.append((metadata["deletionGracePeriodSeconds"], metadata["deletionTimestamp"]))
    assert ends == [(7, "2030-01-01T00:00:07Z"), (5, "2030-01-01T00:00:05Z")]


@pytest.mark.kills("delete: admit before mark")
async def test_second_deletion_in_grace_period_is_not_admitted(api):
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    await api.delete(f"{PODS}/p")
    marked = await api.stored(f"{PODS}/p")
    registry = registry_with(api, recording := Recording())
    answer = await api.send("DELETE", f"{PODS}/p", registry=registry)
    assert (answer.code, recording.mutated) == (200, [])
    assert await api.stored(f"{PODS}/p") == marked


@pytest.mark.kills("delete without admit", "validating admission does nothing")
async def test_object_whose_deletion_plugin_refuses_stays(api, created):
    answer = await api.send("DELETE", ONE, registry=registry_with(api, Refusing()))
    assert answer.refusal == (403, 'configmaps "a" is forbidden: no such writes today')
    assert "deletionTimestamp" not in (await api.stored(ONE))["metadata"]


async def test_deletion_is_admitted_with_old_object_only(api, created):
    registry = registry_with(api, recording := Recording())
    await api.send("DELETE", ONE, registry=registry)
    assert recording.mutated == recording.validated
    ((operation, name, new, old),) = recording.validated
    assert (operation, name, new, old["metadata"]) == (Operation.DELETE, "a", None, created["metadata"])


@pytest.mark.kills("delete without convert", "delete: convert before decode", "delete: admit before convert")
async def test_deletion_of_custom_object_is_admitted_in_version_of_request(api):
    await define_hooks(api, by_webhook=True)
    await api.create(HOOKS_V2, hook("v2", endpoint={"host": "h"}))
    registry = registry_with(api, recording := Recording())
    await api.send("DELETE", f"{HOOKS_V1}/a", registry=registry)
    ((_, _, _, old),) = recording.validated
    assert (old["apiVersion"], old["spec"]["host"]) == ("versions.test/v1", "h")
    assert await api.stored(f"{HOOKS_V1}/a") is None


@pytest.mark.kills("delete without convert_mark", "delete: encode before convert_mark")
@pytest.mark.parametrize(
    ("by_webhook", "spec"),
    [(True, {"endpoint": {"host": "h", "port": 80}, "colour": "red"}), (False, {"colour": "red"})],
)
async def test_marked_custom_object_is_stored_in_storage_version(api, by_webhook, spec):
    await define_hooks(api, by_webhook=by_webhook)
    tree = hook("v2", endpoint={"host": "h"})
    tree["metadata"]["finalizers"] = ["x.io/y"]
    await api.create(HOOKS_V2, tree)
    answer = await api.delete(f"{HOOKS_V1}/a")
    stored = await api.stored(f"{HOOKS_V1}/a")
    assert (answer.code, answer.body["apiVersion"]) == (200, "versions.test/v1")
    assert (stored["apiVersion"], "deletionTimestamp" in stored["metadata"]) == ("versions.test/v2", True)
    assert (
        stored["spec"] == spec
    )  # without a webhook, as upstream: pruned by the schema of the request's version


@pytest.mark.kills("delete: mark before check")
async def test_second_deletion_of_another_pod_than_the_one_in_its_grace_period_is_conflict(api):
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    await api.delete(f"{PODS}/p")
    assert (await api.delete(f"{PODS}/p", {"preconditions": {"uid": "other"}})).code == 409


@pytest.mark.kills("delete: check before convert")
async def test_deletion_of_object_that_webhook_does_not_convert_fails_before_preconditions(api):
    await define_hooks(api, by_webhook=True)
    await api.create(HOOKS_V2, hook("v2", endpoint={"host": "h"}))
    api.servers.convert = lambda tree, _version: tree
    answer = await api.delete(f"{HOOKS_V1}/a", {"preconditions": {"uid": "other"}})
    assert answer.code == 500
    assert "conversion webhook for versions.test/v2, Kind=Hook returned invalid object" in answer.message


@pytest.mark.kills("dry run of a deletion is stored")
async def test_dry_run_of_delete_removes_nothing(api, created):
    answer = await api.delete(ONE, dryRun="All")
    assert (answer.code, answer.body["status"]) == (200, "Success")
    assert (await api.stored(ONE))["metadata"]["uid"] == created["metadata"]["uid"]


async def test_dry_run_of_delete_of_object_with_finalizer_returns_mark_and_stores_none(api):
    await api.create(CONFIG_MAPS, config_map(finalizers=["x.io/y"]))
    answer = await api.delete(ONE, dryRun="All")
    assert (answer.code, "deletionTimestamp" in answer.body["metadata"]) == (200, True)
    assert "deletionTimestamp" not in (await api.stored(ONE))["metadata"]


@pytest.mark.kills("deletion releases no allocations")
async def test_deletion_releases_address_of_service(api):
    service = {"metadata": {"name": "s"}, "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}}
    await api.create(f"{CORE}/services", service)
    await api.delete(f"{CORE}/services/s")
    assert (await api.create(f"{CORE}/services", service)).code == 201


@pytest.mark.kills("release of node ports does not compare their record")
async def test_deletion_of_service_keeps_node_port_that_another_gets_meanwhile(api):
    """The other Service is created between the read of the used ports and the deletion."""

    def service(name, port):
        ports = [{"port": 80, "nodePort": port}]
        return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}}

    services = f"{CORE}/services"
    await api.create(services, service("s", 30001))
    key = api.registry.layout.object(api.catalog.rows["", "v1", "services"], "default", "s")
    execute, codes = api.registry.kv.txn, []

    async def create_other_first(transaction):
        if not codes and Delete(key=key) in transaction.then:
            codes.append(0)
            codes[0] = (await api.create(services, service("t", 30002))).code
        return await execute(transaction)

    api.registry.kv.txn = create_other_first
    assert ((await api.delete(f"{services}/s")).code, codes) == (200, [201])
    answer = await api.create(services, service("u", 30002))
    assert answer.code == 422
    assert "provided port is already allocated" in answer.message


class ChangeRecorder:
    """A watcher that records the kind of each change, and whether its object is marked as being deleted."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.changes = []

    def handle_change(self, change):
        is_marked = "deletionTimestamp" in change.after.tree()["metadata"]
        self.changes.append((change.kind.value, is_marked))


@pytest.mark.kills("mark is not delivered before the deletion")
async def test_watch_gets_mark_of_pod_before_pod_is_removed(api):
    await api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    await api.settle()
    cache = api.registry.resource_cache(GroupResource("", "pods"))
    cache.watchers.add(watcher := ChangeRecorder(cache.prefix))
    execute, before_removal = api.registry.kv.txn, []

    async def note_changes_before_removal(transaction):
        if any(isinstance(each, Delete) for each in transaction.then):
            before_removal.append([*watcher.changes])
        return await execute(transaction)

    api.registry.kv.txn = note_changes_before_removal
    await api.delete(f"{PODS}/p")
    await api.settle()
    assert before_removal == [[("MODIFIED", True)]]
    assert watcher.changes == [("MODIFIED", True), ("DELETED", True)]


@pytest.mark.kills("deletion does not compare the revision")
async def test_finalizer_that_is_added_during_admission_is_respected(api, created):
    async def add_finalizer():
        await api.patch(ONE, {"metadata": {"finalizers": ["x.io/y"]}})

    answer = await api.send("DELETE", ONE, registry=registry_with(api, Interfering(add_finalizer)))
    metadata = (await api.stored(ONE))["metadata"]
    assert (answer.code, metadata["finalizers"]) == (200, ["x.io/y"])
    assert "deletionTimestamp" in metadata


async def test_system_priority_class_is_not_deleted(api):
    await api.create(CLASSES, {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000})
    path = f"{CLASSES}/system-node-critical"
    assert (await api.delete(path)).refusal == (
        403,
        (
            'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: '
            "this is a system priority class and cannot be deleted"
        ),
    )
    assert await api.stored(path) is not None


# --- a collection


@pytest.mark.kills("collection is deleted without its selector")
async def test_delete_collection_removes_only_selected_objects(api):
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {"x": "1"})):
        await api.create(CONFIG_MAPS, config_map(name, labels=labels))
    await api.settle()
    answer = await api.delete(f"{CONFIG_MAPS}?labelSelector=x%3D1")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    assert [name for name in "abc" if await api.stored(f"{CONFIG_MAPS}/{name}")] == ["b"]


async def test_objects_of_collection_are_admitted_without_names(api, created):
    await api.settle()
    registry = registry_with(api, recording := Recording())
    await api.send("DELETE", CONFIG_MAPS, registry=registry)
    ((operation, name, _, old),) = recording.validated
    assert (operation, name, old["metadata"]["name"]) == (Operation.DELETE, "", "a")


@pytest.mark.kills("deletion of a collection has another author")
async def test_journal_names_request_that_deleted_objects_of_collection(api, created):
    await api.settle()
    await api.delete(CONFIG_MAPS, user=ALICE)
    author = api.registry.journal.entries()[-1].author
    assert (author.user, author.verb, author.agent) == ("alice", "deletecollection", "tests/1")


# --- an object that cannot be read


async def store_text(api, text):
    key = api.registry.layout.object(api.catalog.rows["", "v1", "configmaps"], "default", "a")
    await api.registry.kv.put(Put(key=key, value=text))


@pytest.mark.kills("unsafe deletion needs no right")
async def test_deletion_of_unreadable_objects_only_needs_right_of_its_own():
    async with running_api("--feature-gates=AllowUnsafeMalformedObjectDeletion=true", modes=("RBAC",)) as api:
        await store_text(api, b"not an object")
        options = {"ignoreStoreReadErrorWithClusterBreakingPotential": True}
        answer = await api.delete(ONE, options, user=ALICE)
        assert answer.refusal == (
            403,
            'configmaps "a" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: ',
        )
        assert (await api.delete(ONE, options)).code == 200


async def test_unsafe_deletion_of_readable_object_is_refused():
    async with running_api("--feature-gates=AllowUnsafeMalformedObjectDeletion=true") as api:
        await api.create(CONFIG_MAPS, config_map())
        answer = await api.delete(ONE, {"ignoreStoreReadErrorWithClusterBreakingPotential": True})
        assert answer.code == 409
        assert "unsafe deletion is not allowed because the object is decodable from storage" in answer.message
        assert await api.stored(ONE) is not None


DEFINITION = {
    "metadata": {"name": "things.example.com", "finalizers": ["orphan"]},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


async def test_first_deletion_of_definition_ignores_policy_and_the_second_one_does_not(api):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    one = f"{path}/things.example.com"
    await api.create(path, DEFINITION)
    marked = (await api.delete(one, {"propagationPolicy": "Foreground"})).body
    cleanup = "customresourcecleanup.apiextensions.k8s.io"
    assert marked["metadata"]["finalizers"] == ["orphan", cleanup]
    assert "deletionGracePeriodSeconds" not in marked["metadata"]
    again = (await api.delete(one, {"propagationPolicy": "Foreground"})).body
    assert again["metadata"]["finalizers"] == [cleanup, "foregroundDeletion"]
    assert again["metadata"]["deletionGracePeriodSeconds"] == 0
    assert again["status"] == marked["status"]
    await api.patch(one, {"metadata": {"finalizers": ["foregroundDeletion"]}})
    assert (await api.delete(one)).body["metadata"]["finalizers"] == ["foregroundDeletion"]
