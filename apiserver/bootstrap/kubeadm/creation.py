"""Create what kubeadm leaves in a new cluster, once: users delete and change it. Later servers write their address into it."""

import re
from contextlib import suppress
from typing import Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NAMESPACES, GroupResource, GroupVersion
from mockube.apimachinery.randomness import SUFFIX_ALPHABET, Random
from mockube.apimachinery.status import AlreadyExists, NotFound
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.patch import patch_as_server
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import Body, RequestContext
from mockube.apiserver.user import AUTHENTICATED, User
from mockube.component_base.version import version

from .objects import ClusterFacts, objects

ANNOTATION_MINOR: Final = "mockube.dev/kubeadm-minor"
"""The annotation of the namespace kube-system, which nobody can delete, with the minor release whose objects were created."""
_CONFIG_MAPS: Final = GroupResource("", "configmaps")
_SYSTEM: Final = "kube-system"
_CONFIGURATION: Final = "kubeadm-config"
"""The ConfigMap that shows that kubeadm has made the cluster, as also a real one does."""
_TOKEN: Final = (6, 16)
"""The lengths of the id and of the secret of a token."""
_KUBECONFIGS: Final = {
    ("kube-public", "cluster-info"): "kubeconfig",
    ("kube-system", "kube-proxy"): "kubeconfig.conf",
}
"""The ConfigMaps with the address of the API server, and its place there."""
_LOOPBACK_SERVER: Final = re.compile(r"server: https://(127\.[0-9.]+|localhost|\[::1\]):[0-9]+")
_PLURALS: Final = {"StorageClass": "storageclasses"}
_KUBEADM: Final = User(name="kubernetes-admin", groups=("system:masters", AUTHENTICATED))
_MANAGER: Final = "kubeadm"


async def create_objects(registry: Registry, facts: ClusterFacts, *, has_storage_class: bool) -> bool:
    """Create the objects of a new cluster; return False if kubeadm has made it before, so that users keep their changes.

    A cluster that starts again may have another address on this machine.
    """
    if await _is_made(registry):
        await update_server(registry, facts.server)
        return False
    configuration, *others = objects(facts, has_storage_class=has_storage_class)
    for tree in (*others, configuration):  # it is the last one, so that an interrupted start is repeated
        await _create(registry, tree)
    mark = {"metadata": {"annotations": {ANNOTATION_MINOR: facts.minor}}}
    await patch_as_server(registry, registry.rows[NAMESPACES], "", _SYSTEM, mark)
    return True


async def update_server(registry: Registry, server: str) -> None:
    """Write the address of the API server into the ConfigMaps that have an earlier one of this machine."""
    row = registry.rows[_CONFIG_MAPS]
    for (namespace, name), field in _KUBECONFIGS.items():
        try:
            config_map = (await registry.get(row, namespace, name)).tree()
        except NotFound:
            continue
        text = str((config_map.get("data") or {}).get(field) or "")
        new = _LOOPBACK_SERVER.sub(f"server: {server}", text)
        if new != text:
            await patch_as_server(registry, row, namespace, name, {"data": {field: new}})


def random_token(random: Random) -> tuple[str, str]:
    """Return the id and the secret of a bootstrap token."""
    first, second = _TOKEN
    return _text(random, first), _text(random, second)


def _text(random: Random, length: int) -> str:
    return "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in random.bytes(length))


async def _is_made(registry: Registry) -> bool:
    """Return whether objects were created before: a user may have deleted or changed any of them since."""
    namespace = await registry.get(registry.rows[NAMESPACES], "", _SYSTEM)
    configuration = await registry.find(registry.rows[_CONFIG_MAPS], _SYSTEM, _CONFIGURATION)
    return configuration is not None or ANNOTATION_MINOR in meta.annotations(namespace.tree())


async def _create(registry: Registry, tree: Tree) -> None:
    """Create an object as kubeadm does, unless it exists already."""
    kind, group = tree["kind"], GroupVersion.parse(tree["apiVersion"]).group
    context = RequestContext(
        verb="create",
        resource=registry.rows[GroupResource(group, _PLURALS.get(kind, f"{kind.lower()}s"))],
        namespace=meta.namespace(tree),
        body=Body(data=orjson.dumps(tree), media_type="application/json"),
        query={"fieldManager": [_MANAGER]},
        user=_KUBEADM,
        user_agent=f"{_MANAGER}/v{version(registry.gates.minor)}",
    )
    with suppress(AlreadyExists):
        await create(registry, context)
