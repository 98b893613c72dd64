"""Clients of other Python libraries for one cluster. Each library is imported on first use.

They authenticate by a token, because with a client certificate each library would write files of its own.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from mockube.failure import Failure


class NotInstalled(Failure):
    """The library is not installed; the message names the package."""


class ClientConfig(Struct, frozen=True, kw_only=True):
    """The address, CA certificate and token with which clients connect to a cluster."""

    url: str
    authority: Path
    token: str
    folder: Path
    """A folder for a kubeconfig."""


def kubernetes(endpoint: ClientConfig) -> Any:
    """Return an `ApiClient` of the official client."""
    __tracebackhide__ = True
    return _openapi_client(endpoint, "kubernetes.client", "kubernetes")


def kubernetes_asyncio(endpoint: ClientConfig) -> Any:
    """Return an `ApiClient` of kubernetes_asyncio, for the running event loop."""
    __tracebackhide__ = True
    return _openapi_client(endpoint, "kubernetes_asyncio.client", "kubernetes-asyncio")


def kr8s(endpoint: ClientConfig) -> Any:
    __tracebackhide__ = True
    return _import_client("kr8s", "kr8s").api(kubeconfig=_kubeconfig(endpoint))


async def kr8s_async(endpoint: ClientConfig) -> Any:
    __tracebackhide__ = True
    return await _import_client("kr8s.asyncio", "kr8s").api(kubeconfig=_kubeconfig(endpoint))


def lightkube(endpoint: ClientConfig, *, client: str = "Client") -> Any:
    """Return a client of lightkube; `client` is the name of its class."""
    __tracebackhide__ = True
    library = _import_client("lightkube", "lightkube")
    config = library.KubeConfig.from_file(_kubeconfig(endpoint))
    return getattr(library, client)(config=config, namespace="default", trust_env=False)


def _openapi_client(endpoint: ClientConfig, module: str, package: str) -> Any:
    """Return an `ApiClient` of one of the two libraries that are generated from the OpenAPI specification."""
    __tracebackhide__ = True
    library = _import_client(module, package)
    configuration = library.Configuration(host=endpoint.url)
    configuration.ssl_ca_cert = str(endpoint.authority)
    configuration.api_key = {"authorization": endpoint.token, "BearerToken": endpoint.token}
    configuration.api_key_prefix = {"authorization": "Bearer", "BearerToken": "Bearer"}
    return library.ApiClient(configuration=configuration)


def _import_client(name: str, package: str) -> Any:
    __tracebackhide__ = True
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        raise NotInstalled(f"{package} is not installed: pip install {package}") from None


def _kubeconfig(endpoint: ClientConfig) -> str:
    path = endpoint.folder / "kubeconfig-of-clients"
    name = "mockube"
    cluster = {"server": endpoint.url, "certificate-authority": str(endpoint.authority)}
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": endpoint.token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(tree))
    return str(path)
