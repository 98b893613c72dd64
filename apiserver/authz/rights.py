"""The authorizers of one server, by the modes of `--authorization-mode`. They are updated from its watch cache."""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.watch_cache import WatchCache

from .chain import AlwaysAllow, AlwaysDeny, Authorization, Authorizer, RemoteAuthorization
from .node.authorizer import NodeAuthorizer
from .node.graph import GROUPS, NodeGraph
from .rbac.authorizer import RBAC
from .rbac.policy import GROUP, RBACPolicy

if TYPE_CHECKING:
    from .configured_authorizers import AuthorizationSettings, ConfiguredAuthorizers


DEFAULT_MODES: Final = ("Node", "RBAC")
PLAIN_MODES: Final = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC")
"""Modes without configuration."""


class Rights:
    """`rules` are those of all nodes, `stored` the resources that the server stores."""

    def __init__(
        self,
        authorization_modes: Sequence[str],
        rules: Sequence[Mapping[str, Any]],
        stored: Container[GroupResource],
    ) -> None:
        self.rbac = RBAC(RBACPolicy())
        self.nodes = NodeGraph(
            [name for name, group in GROUPS.items() if GroupResource(group, name) in stored]
        )
        self._node = NodeAuthorizer(self.nodes, rules)
        plain = [mode for mode in authorization_modes if mode in PLAIN_MODES]
        self.authorization = authorization_of(plain, self.rbac, self._node)

    def configure(
        self, settings: "AuthorizationSettings", remote: RemoteAuthorization
    ) -> "ConfiguredAuthorizers":
        """Replace the authorizers by those of a configuration; its `run` reloads the file."""
        from .configured_authorizers import ConfiguredAuthorizers  # noqa: PLC0415 - few need it

        built_in: Mapping[str, Authorizer] = {"Node": self._node, "RBAC": self.rbac}
        return ConfiguredAuthorizers(settings, self.authorization, built_in, remote)

    def watch(self, caches: Callable[[str, str], ResourceCache], watch_cache: WatchCache) -> None:
        """Update them from the watch cache from now on; `caches` returns the cache of a group and resource."""
        rbac_cache, node_cache = partial(caches, GROUP), lambda name: caches(GROUPS[name], name)
        self.rbac.watch(rbac_cache)
        self.nodes.watch(node_cache)
        watch_cache.on_reset += [lambda: self.rbac.reset(rbac_cache), self.nodes.reset]


def authorization_of(modes: Sequence[str], rbac: RBAC, node: NodeAuthorizer) -> Authorization:
    """Return the chain of authorizers in the order of the modes."""
    authorizers_by_mode: Mapping[str, Authorizer] = {
        "AlwaysAllow": AlwaysAllow(),
        "AlwaysDeny": AlwaysDeny(),
        "Node": node,
        "RBAC": rbac,
    }
    return Authorization(
        [authorizers_by_mode[mode] for mode in modes], [(mode, mode.lower()) for mode in modes]
    )
