"""Requests of client libraries to their default cluster. Each function imports its library, unless it was imported before.

`python -m tests.support.default_clients before|inside` imports the libraries before or inside a block of `as_default`, and prints
the URLs that they use in the block, and where two of them look for a kubeconfig after it.
"""

import asyncio
import contextlib
import logging
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

import orjson

from mockube import Cluster


def kubernetes_without_loading():
    from kubernetes import client

    with client.ApiClient() as api:
        client.CoreV1Api(api).list_node()
        return api.configuration.host


def kubernetes_loaded():
    from kubernetes import client, config

    config.load_kube_config()
    core = client.CoreV1Api()
    core.list_node()
    return core.api_client.configuration.host


def kubernetes_load_config():
    from kubernetes import client, config

    config.load_config()
    core = client.CoreV1Api()
    core.list_node()
    return core.api_client.configuration.host


def kubernetes_new_client():
    from kubernetes import client, config

    with config.new_client_from_config() as api:
        client.CoreV1Api(api).list_node()
        assert config.list_kube_config_contexts()
        return api.configuration.host


async def kubernetes_asyncio_without_loading():
    from kubernetes_asyncio import client

    async with client.ApiClient() as api:
        await client.CoreV1Api(api).list_node()
        return api.configuration.host


async def kubernetes_asyncio_loaded():
    from kubernetes_asyncio import client, config

    await config.load_config()
    async with client.ApiClient() as api:
        await client.CoreV1Api(api).list_node()
        return api.configuration.host


def kr8s_blocking():
    import kr8s

    api = kr8s.api()
    assert [*api.get("nodes")]
    return api.auth.server


async def kr8s_awaited():
    import kr8s.asyncio

    api = await kr8s.asyncio.api()
    assert [node async for node in api.get("nodes")]
    await api._session.aclose()  # kr8s caches every client and closes none
    return api.auth.server


def lightkube():
    return _lightkube(trust_env=True)


def lightkube_without_environment():
    return _lightkube(trust_env=False)


def _lightkube(*, trust_env):
    from lightkube import Client
    from lightkube.resources.core_v1 import Node

    with contextlib.closing(Client(trust_env=trust_env)) as client:
        assert [*client.list(Node)]
        return client.config.cluster.server


def kopf_by_kubernetes():
    return _kopf("login_via_client")


async def kopf_by_kubernetes_asyncio():
    import kopf

    login = kopf.login_via_async_client(logger=logging.getLogger(), settings=kopf.OperatorSettings())
    return (await login).server


def kopf_by_kubeconfig():
    return _kopf("login_with_kubeconfig")


def kopf_by_pykube():
    return _kopf("login_via_pykube")


def _kopf(login):
    import kopf

    return getattr(kopf, login)(logger=logging.getLogger(), settings=kopf.OperatorSettings()).server


def pykube():
    import pykube

    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    assert [*pykube.Node.objects(api)]
    return api.config.cluster["server"]


REQUESTS = (
    kubernetes_without_loading,
    kubernetes_loaded,
    kubernetes_load_config,
    kubernetes_new_client,
    kubernetes_asyncio_without_loading,
    kubernetes_asyncio_loaded,
    kr8s_blocking,
    kr8s_awaited,
    lightkube,
    lightkube_without_environment,
    kopf_by_kubernetes,
    kopf_by_kubernetes_asyncio,
    kopf_by_kubeconfig,
)
PYKUBE_REQUESTS = (pykube, kopf_by_pykube)
MODULES = ("kubernetes.dynamic", "kubernetes_asyncio.dynamic", "kr8s.asyncio", "lightkube", "kopf")


def send(request):
    """Call a function of this module, and return the URL that its library used."""
    result = request()
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


def main(order):
    warnings.simplefilter("ignore")
    has_pykube = find_spec("pykube") is not None
    if order == "before":
        for module in (*MODULES, *(["pykube"] if has_pykube else [])):
            import_module(module)
    with Cluster(nodes=1) as cluster:
        with cluster.as_default():
            requests = (*REQUESTS, *(PYKUBE_REQUESTS if has_pykube else ()))
            urls = {request.__name__: send(request) for request in requests}
        locations = [
            import_module(name).KUBE_CONFIG_DEFAULT_LOCATION
            for library in ("kubernetes", "kubernetes_asyncio")
            for name in (f"{library}.config", f"{library}.config.kube_config")
        ]
        print(orjson.dumps({"cluster": cluster.url, "urls": urls, "locations": locations}).decode())


if __name__ == "__main__":
    main(sys.argv[1])
