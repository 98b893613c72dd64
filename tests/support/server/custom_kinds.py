"""Definitions of a custom kind in two versions, for tests without HTTP: v1 has a host, v2 an endpoint with it."""

from tests.support.server.conversion_server import GROUP, ConversionServer, convert
from tests.support.server.definitions import DEFINITIONS

HOOKS_V1, HOOKS_V2 = (f"/apis/{GROUP}/{version}/namespaces/default/hooks" for version in ("v1", "v2"))


def hook(version="v1", *, name="a", **spec):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Hook", "metadata": {"name": name}, "spec": spec}


def hooks_definition(*, by_webhook):
    """Return the definition of Hooks, which are stored in v2. Without a webhook only the apiVersion is converted."""
    tree = ConversionServer(b"").definition(url="https://hooks.test/convert")
    if not by_webhook:
        tree["spec"]["conversion"] = {"strategy": "None"}
    return tree


async def define_hooks(api, *, by_webhook):
    api.servers.convert = convert
    await api.create_all((DEFINITIONS, hooks_definition(by_webhook=by_webhook)))
