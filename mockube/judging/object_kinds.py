"""What the kinds of objects mean for an operator's manifests and for what it creates. Pure."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree

_FIRST: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role")
_WEBHOOKS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_OFTEN_STAYING: Final = ("PersistentVolumeClaim", "Secret", "Namespace", "CustomResourceDefinition")


def is_namespace(tree: ReadOnlyTree) -> bool:
    return tree.get("kind") == "Namespace"


def is_definition(tree: ReadOnlyTree) -> bool:
    return tree.get("kind") == "CustomResourceDefinition"


def is_webhook(tree: ReadOnlyTree) -> bool:
    return tree.get("kind") in _WEBHOOKS


def is_workload(tree: ReadOnlyTree) -> bool:
    return tree.get("kind") in ("Deployment", "StatefulSet", "DaemonSet")


def has_replicas(workload: ReadOnlyTree) -> bool:
    return workload.get("kind") != "DaemonSet"


def replaces_pods_one_by_one(workload: ReadOnlyTree) -> bool:
    """Return whether a new pod begins only after the old one has ended."""
    strategy = ((workload.get("spec") or {}).get("strategy") or {}).get("type")
    return workload.get("kind") == "StatefulSet" or strategy == "Recreate"


def is_role(tree: ReadOnlyTree) -> bool:
    return tree.get("kind") in ("ClusterRole", "Role")


def is_binding(tree: ReadOnlyTree) -> bool:
    return tree.get("kind") in ("ClusterRoleBinding", "RoleBinding")


def service_accounts(binding: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    """Return the subjects of a binding that are service accounts."""
    return [each for each in binding.get("subjects") or () if each.get("kind") == "ServiceAccount"]


def often_stays(tree: ReadOnlyTree) -> bool:
    """Return whether operators often keep such an object on purpose when its custom resource is gone."""
    return tree.get("kind") in _OFTEN_STAYING


def install_order(tree: ReadOnlyTree) -> int:
    """Return the place of an object in an installation: what others need is first, and webhooks are last."""
    kind = str(tree.get("kind"))
    if is_webhook(tree):
        return len(_FIRST) + 1
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)
