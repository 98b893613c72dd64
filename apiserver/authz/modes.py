"""The authorizers of `--authorization-mode`, by the names that upstream gives them."""

from collections.abc import Mapping, Sequence
from typing import Final

from mockube.apiserver.authz.chain import AlwaysAllow, AlwaysDeny, Authorization, Authorizer
from mockube.apiserver.authz.node.authorizer import NodeAuthorizer
from mockube.apiserver.authz.rbac.authorizer import RBAC

DEFAULT: Final = ("Node", "RBAC")
PLAIN: Final = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC")
"""Modes without configuration."""


def authorization(modes: Sequence[str], rbac: RBAC, node: NodeAuthorizer) -> Authorization:
    """Return the chain in the order of the modes."""
    built: Mapping[str, Authorizer] = {
        "AlwaysAllow": AlwaysAllow(),
        "AlwaysDeny": AlwaysDeny(),
        "Node": node,
        "RBAC": rbac,
    }
    return Authorization([built[mode] for mode in modes], [(mode, mode.lower()) for mode in modes])
