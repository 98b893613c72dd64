"""Common Python clients, with the kubeconfig that the server writes."""

import asyncio
import gc

import kr8s
import kubernetes
import kubernetes_asyncio
import lightkube
import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Namespace

pytestmark = [
    pytest.mark.timeout(120),
    # These clients leave connections open and warn about Kubernetes versions.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]


@pytest.fixture(autouse=True)
def left_open_no_longer():
    """Collect unclosed connections here, so that no later test gets their warnings."""
    yield
    gc.collect()


def body(name, **data):
    return {"metadata": {"name": name}, "data": data}


def test_official_client_lists_watches_and_patches(server, namespace):
    with kubernetes.config.new_client_from_config(str(server.kubeconfig)) as connection:
        core = kubernetes.client.CoreV1Api(connection)
        core.create_namespace({"metadata": {"name": namespace}})
        created = core.create_namespaced_config_map(namespace, body("a", k="v"))
        assert core.read_namespaced_config_map("a", namespace).data == {"k": "v"}
        core.patch_namespaced_config_map("a", namespace, {"data": {"k": "w"}})
        core.delete_namespaced_config_map("a", namespace)
        events = kubernetes.watch.Watch().stream(
            core.list_namespaced_config_map,
            namespace,
            resource_version=created.metadata.resource_version,
            timeout_seconds=10,
        )
        seen = [next(events)["type"] for _ in range(2)]
        events.close()
        assert seen == ["MODIFIED", "DELETED"]
        with pytest.raises(kubernetes.client.ApiException) as caught:
            core.read_namespaced_config_map("a", namespace)
        assert caught.value.status == 404


def test_official_dynamic_client_discovers_kinds(server, namespace):
    with kubernetes.config.new_client_from_config(str(server.kubeconfig)) as connection:
        dynamic = kubernetes.dynamic.DynamicClient(connection)
        dynamic.resources.get(api_version="v1", kind="Namespace").create({"metadata": {"name": namespace}})
        leases = dynamic.resources.get(api_version="coordination.k8s.io/v1", kind="Lease")
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
        leases.create(lease, namespace=namespace)
        applied = leases.server_side_apply(
            lease | {"spec": {"holderIdentity": "me"}}, namespace=namespace, field_manager="test"
        )
        assert applied.spec.holderIdentity == "me"


async def test_asynchronous_client_watches_while_writing(server, namespace):
    await kubernetes_asyncio.config.load_kube_config(str(server.kubeconfig))
    async with kubernetes_asyncio.client.ApiClient() as connection:
        core = kubernetes_asyncio.client.CoreV1Api(connection)
        await core.create_namespace({"metadata": {"name": namespace}})
        watch = kubernetes_asyncio.watch.Watch()
        stream = watch.stream(core.list_namespaced_config_map, namespace, timeout_seconds=10)
        reader = asyncio.create_task(anext(stream))
        await core.create_namespaced_config_map(namespace, body("a"))
        assert (await reader)["object"].metadata.name == "a"
        watch.stop()
        await watch.close()


async def test_kr8s_creates_scales_and_deletes(server, namespace):
    api = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
    await (await kr8s.asyncio.objects.Namespace({"metadata": {"name": namespace}}, api=api)).create()
    config = await kr8s.asyncio.objects.ConfigMap(
        {"metadata": {"name": "a", "namespace": namespace}, "data": {"k": "v"}}, api=api
    )
    await config.create()
    await config.label({"colour": "red"})
    found = [
        item async for item in api.get("configmaps", namespace=namespace, label_selector={"colour": "red"})
    ]
    assert [item.name for item in found] == ["a"]
    await config.delete()
    await api._session.aclose()  # kr8s caches every client and closes none


def test_lightkube_applies_and_watches(server, namespace):
    config = lightkube.KubeConfig.from_file(str(server.kubeconfig))
    client = lightkube.Client(config=config.get(), namespace=namespace, field_manager="test")
    client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    applied = client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "v"}))
    assert applied.data == {"k": "v"}
    kind, found = next(iter(client.watch(ConfigMap, server_timeout=10)))
    assert (kind, found.metadata.name) == ("ADDED", "a")
    assert [item.metadata.name for item in client.list(ConfigMap)] == ["a"]
    client.delete(ConfigMap, "a")
