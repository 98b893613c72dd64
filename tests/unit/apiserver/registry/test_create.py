"""A create: what is stored of a body, and what is not."""

import pytest

from mockube.apiserver.registry.create import MAX_NAMES
from tests.support.event_loop import yield_to_loop
from tests.support.server.custom_kinds import HOOKS_V1, define_hooks, hook
from tests.support.server.fake_admission import (
    Interfering,
    Labelling,
    Recording,
    Refusing,
    Setting,
    registry_with,
)
from tests.support.server.memory_api import ALICE, CORE, running_api

CONFIG_MAPS = f"{CORE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SERVICES = f"{CORE}/services"


def config_map(name="a", **fields):
    return {"metadata": {"name": name}, **fields}


def deployment(name="d", **fields):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec, **fields}


@pytest.mark.kills("create without decode")
async def test_created_object_has_identity_time_and_manager(api):
    answer = await api.create(CONFIG_MAPS, config_map(data={"k": "v"}))
    stored = await api.stored(f"{CONFIG_MAPS}/a")
    metadata = stored["metadata"]
    assert (answer.code, answer.body["metadata"]["uid"]) == (201, metadata["uid"])
    assert (metadata["namespace"], metadata["creationTimestamp"]) == ("default", "2030-01-01T00:00:00Z")
    (manager,) = metadata["managedFields"]
    assert (manager["manager"], manager["operation"]) == ("tests", "Update")
    assert stored["data"] == {"k": "v"}


@pytest.mark.kills("system fields of a client are created")
async def test_system_fields_that_client_sends_are_not_stored(api):
    sent = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
    await api.create(
        CONFIG_MAPS, {"metadata": {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z", **sent}}
    )
    metadata = (await api.stored(f"{CONFIG_MAPS}/a"))["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] == "2030-01-01T00:00:00Z"
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds"} & metadata.keys()
    assert "managedFields" not in metadata  # the client manages nothing of it


@pytest.mark.kills("create without convert", "create: convert before decode", "create: admit before convert")
async def test_built_in_object_is_admitted_and_stored_in_storage_version(api):
    spec = {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "targetCPUUtilizationPercentage": 50,
    }
    recording = Recording()
    answer = await api.send(
        "POST", AUTOSCALERS, {"metadata": {"name": "h"}, "spec": spec}, registry=registry_with(api, recording)
    )
    assert (answer.code, answer.body["spec"]["targetCPUUtilizationPercentage"]) == (201, 50)
    ((_, _, admitted, _),) = recording.mutated
    stored = await api.stored(f"{AUTOSCALERS}/h")
    assert admitted["apiVersion"] == stored["apiVersion"] == "autoscaling/v2"
    assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


@pytest.mark.kills(
    "create without admit", "result of a mutating plugin is ignored", "mutating admission does nothing"
)
async def test_object_is_stored_as_mutating_plugin_changed_it(api):
    answer = await api.send("POST", CONFIG_MAPS, config_map(), registry=registry_with(api, Labelling()))
    assert answer.body["metadata"]["labels"] == {"admitted": "yes"}
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["metadata"]["labels"] == {"admitted": "yes"}


@pytest.mark.kills("create without prepare")
async def test_status_and_generation_that_client_sends_are_not_stored(api):
    tree = deployment(status={"replicas": 7})
    tree["metadata"]["generation"] = 9
    answer = await api.create(DEPLOYMENTS, tree)
    stored = await api.stored(f"{DEPLOYMENTS}/d")
    assert (answer.code, stored["metadata"]["generation"]) == (201, 1)
    assert "replicas" not in stored["status"]


@pytest.mark.kills("create without allocate")
async def test_created_service_gets_address_of_its_network(api):
    answer = await api.create(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    assert answer.code == 201
    assert (await api.stored(f"{SERVICES}/s"))["spec"]["clusterIP"].startswith("10.0.")


@pytest.mark.kills("create: allocate before prepare")
async def test_address_of_another_service_is_refused(api):
    spec = {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}
    await api.create(SERVICES, {"metadata": {"name": "s"}, "spec": spec})
    answer = await api.create(SERVICES, {"metadata": {"name": "t"}, "spec": spec})
    assert answer.code == 422
    assert "provided IP is already allocated" in answer.message
    assert await api.stored(f"{SERVICES}/t") is None


@pytest.mark.parametrize("case", ["dry run", "refused", "invalid"])
async def test_service_that_is_not_stored_takes_no_address(api, case):
    """An address is taken by the transaction that stores the Service, and by nothing before it."""
    service = {"metadata": {"name": "s"}, "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}}
    match case:
        case "dry run":
            assert (await api.create(SERVICES, service, dryRun="All")).code == 201
        case "refused":
            registry = registry_with(api, Refusing())
            assert (await api.send("POST", SERVICES, service, registry=registry)).code == 403
        case "invalid":
            invalid = service | {"spec": service["spec"] | {"sessionAffinity": "Sometimes"}}
            assert (await api.create(SERVICES, invalid)).code == 422
    assert await api.stored(f"{SERVICES}/s") is None
    assert (await api.create(SERVICES, service)).code == 201


async def test_two_services_that_are_created_at_once_get_different_addresses(api):
    """The second Service is stored while the first one is admitted with its address."""
    second = {"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}]}}

    async def create_second():
        await api.create(SERVICES, second)

    registry = registry_with(api, Interfering(create_second))
    first = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    answer = await api.send("POST", SERVICES, first, registry=registry)
    assert answer.code == 201, answer.message
    addresses = {(await api.stored(f"{SERVICES}/{name}"))["spec"]["clusterIP"] for name in "st"}
    assert len(addresses) == 2


async def test_address_that_another_service_takes_during_admission_is_refused(api):
    spec = {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}

    async def create_other():
        await api.create(SERVICES, {"metadata": {"name": "t"}, "spec": spec})

    registry = registry_with(api, Interfering(create_other))
    answer = await api.send("POST", SERVICES, {"metadata": {"name": "s"}, "spec": spec}, registry=registry)
    assert answer.code == 422
    assert "provided IP is already allocated" in answer.message
    assert await api.stored(f"{SERVICES}/s") is None


def device_claim(**exactly):
    return {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}]}},
    }


@pytest.mark.kills("create without authorize", "second authorizations are left out")
async def test_claim_with_admin_access_needs_label_of_its_namespace(api):
    answer = await api.create(CLAIMS, device_claim(adminAccess=True))
    assert answer.code == 422
    assert (
        "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label"
        in answer.message
    )
    assert await api.stored(f"{CLAIMS}/c") is None


@pytest.mark.kills("create without validate")
async def test_invalid_object_is_not_created(api):
    answer = await api.create(CONFIG_MAPS, config_map(data={"a b": "v"}))
    assert answer.code == 422
    assert answer.message.startswith('ConfigMap "a" is invalid: data[a b]: Invalid value: "a b"')
    assert await api.stored(f"{CONFIG_MAPS}/a") is None


@pytest.mark.kills("create: validate before authorize")
async def test_admin_access_is_reported_before_invalid_fields(api):
    answer = await api.create(CLAIMS, device_claim(adminAccess=True, count=-1))
    fields = [cause["field"] for cause in answer.body["details"]["causes"]]
    assert fields == [f"spec.devices.requests[0].{name}" for name in ("adminAccess", "exactly.count")]


@pytest.mark.kills("create: admit_validated before validate")
async def test_invalid_object_is_not_shown_to_validating_plugins(api):
    recording = Recording()
    registry = registry_with(api, recording)
    answer = await api.send("POST", CONFIG_MAPS, config_map(data={"a b": "v"}), registry=registry)
    assert (answer.code, len(recording.mutated), recording.validated) == (422, 1, [])


@pytest.mark.kills(
    "create without admit_validated", "validating admission does nothing", "error of a plugin is ignored"
)
async def test_object_that_validating_plugin_refuses_is_not_created(api):
    answer = await api.send("POST", CONFIG_MAPS, config_map(), registry=registry_with(api, Refusing()))
    assert answer.refusal == (403, 'configmaps "a" is forbidden: no such writes today')
    assert await api.stored(f"{CONFIG_MAPS}/a") is None


async def test_plugin_validates_name_that_was_generated(api):
    recording = Recording()
    tree = {"metadata": {"generateName": "a-"}}
    answer = await api.send("POST", CONFIG_MAPS, tree, registry=registry_with(api, recording))
    ((_, mutated, _, _),) = recording.mutated
    ((_, validated, _, _),) = recording.validated
    assert (mutated, validated) == ("", answer.body["metadata"]["name"])


@pytest.mark.kills("create without authorize_creation", "authorization allows every second check")
@pytest.mark.parametrize("verb", ["update", "apply"])
async def test_update_and_apply_of_missing_object_need_right_to_create(verb):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    tree = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    async with running_api(modes=("RBAC",)) as api:
        answer = await getattr(api, verb)(path, tree, user=ALICE)
        assert answer.refusal == (
            403,
            (
                'leases.coordination.k8s.io "l" is forbidden: User "alice" cannot create resource "leases" '
                'in API group "coordination.k8s.io" in the namespace "default"'
            ),
        )
        assert await api.stored(path) is None
        assert (await getattr(api, verb)(path, tree)).code == 201


@pytest.mark.kills("create: authorize_creation before validate")
async def test_invalid_object_of_user_without_right_to_create_is_invalid():
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    tree = {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": -1}}
    async with running_api(modes=("RBAC",)) as api:
        answer = await api.update(path, tree, user=ALICE)
    assert answer.code == 422
    assert "spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0" in answer.message


@pytest.mark.kills("create: admit_validated before authorize_creation")
async def test_object_of_user_without_right_to_create_is_not_shown_to_validating_plugins():
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    async with running_api(modes=("RBAC",)) as api:
        registry = registry_with(api, recording := Recording())
        answer = await api.send("PUT", path, {"metadata": {"name": "l"}}, user=ALICE, registry=registry)
    assert (answer.code, len(recording.mutated), recording.validated) == (403, 1, [])


@pytest.mark.kills("create without convert_to_store")
async def test_custom_object_is_stored_in_storage_version(api):
    await define_hooks(api, by_webhook=False)
    answer = await api.create(HOOKS_V1, hook(size=5))
    assert (answer.code, answer.body["apiVersion"]) == (201, "versions.test/v1")
    stored = await api.stored(f"{HOOKS_V1}/a")
    assert (stored["apiVersion"], stored["spec"]["size"]) == ("versions.test/v2", 5)


@pytest.mark.kills("create without convert_by_webhook", "create: encode before convert_by_webhook")
async def test_custom_object_is_stored_as_conversion_webhook_returns_it(api):
    await define_hooks(api, by_webhook=True)
    answer = await api.create(HOOKS_V1, hook(host="h"))
    assert (answer.code, answer.body["spec"]["host"]) == (201, "h")
    stored = await api.stored(f"{HOOKS_V1}/a")
    assert (stored["apiVersion"], stored["spec"]["endpoint"]["host"]) == ("versions.test/v2", "h")


@pytest.mark.kills("create without encode", "create without commit", "create: commit before encode")
async def test_created_object_is_returned_as_it_is_stored(api):
    answer = await api.create(CONFIG_MAPS, config_map(data={"k": "v"}))
    stored = await api.stored(f"{CONFIG_MAPS}/a")
    version = answer.body["metadata"].pop("resourceVersion")
    assert (answer.body, version) == (stored, str((await api.registry.kv.status()).revision))


@pytest.mark.kills("dry run is stored")
async def test_dry_run_of_create_returns_object_and_stores_nothing(api):
    answer = await api.create(CONFIG_MAPS, config_map(data={"k": "v"}), dryRun="All")
    assert (answer.code, answer.body["data"]) == (201, {"k": "v"})
    assert await api.stored(f"{CONFIG_MAPS}/a") is None


async def test_create_of_existing_object_is_already_exists(api):
    await api.create(CONFIG_MAPS, config_map(data={"k": "old"}))
    for options in ({}, {"dryRun": "All"}):
        answer = await api.create(CONFIG_MAPS, config_map(data={"k": "new"}), **options)
        assert answer.refusal == (409, 'configmaps "a" already exists')
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["data"] == {"k": "old"}


@pytest.mark.kills("write does not compare revisions")
async def test_object_that_appears_during_admission_is_not_overwritten(api):
    async def create_other():
        await api.create(CONFIG_MAPS, config_map(data={"k": "other"}))

    registry = registry_with(api, Interfering(create_other))
    answer = await api.send("POST", CONFIG_MAPS, config_map(data={"k": "mine"}), registry=registry)
    assert answer.refusal == (409, 'configmaps "a" already exists')
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["data"] == {"k": "other"}


async def test_create_with_resource_version_is_refused(api):
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a", "resourceVersion": "5"}})
    assert answer.refusal == (500, "resourceVersion should not be set on objects to be created")
    assert await api.stored(f"{CONFIG_MAPS}/a") is None


@pytest.mark.kills("generated name is tried once")
async def test_generated_name_that_is_in_use_is_replaced(api):
    names = []

    class Taking(Recording):
        """Takes each name, but the last one that is tried."""

        async def validate(self, _registry, attributes):
            names.append(attributes.name)
            if len(names) < MAX_NAMES:
                await api.create(CONFIG_MAPS, config_map(attributes.name))

    registry = registry_with(api, Taking())
    answer = await api.send("POST", CONFIG_MAPS, {"metadata": {"generateName": "a-"}}, registry=registry)
    assert (answer.code, answer.body["metadata"]["name"]) == (201, names[-1])
    assert len(set(names)) == MAX_NAMES


async def test_create_gives_up_after_eight_generated_names(api):
    names = []

    class Taking(Recording):
        async def validate(self, _registry, attributes):
            names.append(attributes.name)
            await api.create(CONFIG_MAPS, config_map(attributes.name))

    registry = registry_with(api, Taking())
    answer = await api.send("POST", CONFIG_MAPS, {"metadata": {"generateName": "a-"}}, registry=registry)
    assert (answer.code, len(names)) == (409, MAX_NAMES)
    assert answer.message == (
        f'configmaps "{names[-1]}" already exists, the server was not able to generate a unique name for the object'
    )


async def test_duplicate_owner_is_stored_once_with_warning(api):
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a", "ownerReferences": [owner, owner]}})
    assert ".metadata.ownerReferences contains duplicate entries" in answer.warnings[0]
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["metadata"]["ownerReferences"] == [owner]


# --- what admission changes, fields of gates, times to live, rights


@pytest.mark.kills("namespace that admission changes is stored")
async def test_object_that_plugin_moves_to_another_namespace_is_refused(api):
    registry = registry_with(api, Setting(namespace="kube-system"))
    answer = await api.send("POST", CONFIG_MAPS, config_map(), registry=registry)
    assert answer.refusal == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    assert await api.stored(f"{CONFIG_MAPS}/a") is None


@pytest.mark.kills("owner that admission repeats is stored twice")
async def test_owner_that_plugin_adds_twice_is_stored_once_with_warning(api):
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    registry = registry_with(api, Setting(ownerReferences=[owner, owner]))
    answer = await api.send("POST", CONFIG_MAPS, config_map(), registry=registry)
    assert (await api.stored(f"{CONFIG_MAPS}/a"))["metadata"]["ownerReferences"] == [owner]
    (warning,) = answer.warnings
    assert warning.startswith(
        ".metadata.ownerReferences contains duplicate entries after mutating admission happens; "
    )


@pytest.mark.kills("field of a disabled gate is stored")
async def test_field_whose_gate_is_off_is_not_created(api):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    spec = {"strategy": "OldestEmulationVersion", "preferredHolder": "b", "holderIdentity": "a"}
    answer = await api.create(path, {"metadata": {"name": "a"}, "spec": spec})
    assert (answer.code, answer.body["spec"]) == (201, {"holderIdentity": "a"})
    assert (await api.stored(f"{path}/a"))["spec"] == {"holderIdentity": "a"}


@pytest.mark.kills("object is stored without its lease")
async def test_event_disappears_at_end_of_its_time_to_live(api):
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    await api.create(f"{CORE}/events", {"metadata": {"name": "e"}, "involvedObject": involved})
    api.registry.clock.advance(3_599)
    assert (await api.get(f"{CORE}/events/e")).code == 200
    api.registry.clock.advance(62)  # objects of one minute share a lease
    await yield_to_loop()
    assert (await api.get(f"{CORE}/events/e")).code == 404


@pytest.mark.kills("creation by update or apply is authorized in all namespaces")
@pytest.mark.parametrize(
    ("path", "resource", "namespace"),
    [(f"{CONFIG_MAPS}/a", "configmaps", "default"), ("/api/v1/namespaces/team", "namespaces", "team")],
)
async def test_apply_that_would_create_needs_right_to_create_in_its_namespace(path, resource, namespace):
    kind, name = {"configmaps": "ConfigMap", "namespaces": "Namespace"}[resource], path.rpartition("/")[2]
    tree = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    async with running_api(modes=("RBAC",)) as api:
        answer = await api.apply(path, tree, user=ALICE)
        problem = (
            f'User "alice" cannot create resource "{resource}" in API group "" in the namespace "{namespace}"'
        )
        assert answer.refusal == (403, f'{resource} "{name}" is forbidden: {problem}')
        assert await api.stored(path) is None
