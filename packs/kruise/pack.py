"""The pack: what the processes load of OpenKruise, each only its own part."""

from collections.abc import Iterable, Sequence
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, Final

from mockube.apimachinery.tree import Tree
from mockube.component_base.packs import Pack

from .flags import KruiseFlags

if TYPE_CHECKING:
    from mockube.apiserver.admission.plugin import Plugin
    from mockube.apiserver.packs.webhook import KindWebhook
    from mockube.controller_manager.control.controller import Controller

_DEFINITIONS: Final = ("clonesets", "statefulsets", "uniteddeployments")
_ALL: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": list(resources)}


_ROLES: Final = (
    _rule("apps.kruise.io", ["*"], ["*"]),
    _rule("apps", ["controllerrevisions", "deployments", "replicasets", "statefulsets"], _ALL),
    # The barriers of launch priorities.
    _rule("", ["configmaps"], ["create", "patch"]),
)


def _definitions() -> Iterable[bytes]:
    for name in _DEFINITIONS:
        text = get_data(__package__, f"definitions/{name}.yaml")
        assert text is not None, "the package is installed where its files can be read"
        yield text


def _add_versions(definition: Tree) -> Tree:
    from .definitions import alpha, beta  # noqa: PLC0415 - for the API server

    return alpha.with_alpha(beta.with_beta(definition))


def _webhooks() -> "Iterable[KindWebhook | Plugin]":
    from .webhooks.webhooks import WEBHOOKS  # noqa: PLC0415 - for the API server

    return WEBHOOKS


def _controllers(flags: KruiseFlags) -> "Iterable[Controller]":
    from .catalog import controllers  # noqa: PLC0415 - for the controller manager

    return controllers(flags)


PACK: Final = Pack(
    definitions=_definitions,
    add_versions=_add_versions,
    webhooks=_webhooks,
    controllers=_controllers,
    flags=KruiseFlags,
    roles=_ROLES,
)
