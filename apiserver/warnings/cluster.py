"""Nodes, quotas, accounts and what else belongs to the whole cluster."""

from collections.abc import Iterator
from typing import Final

from apimachinery import meta, quantity
from apimachinery.gotext import quote
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.rules import Tree
from apiserver.warnings.addresses import of_cidrs
from apiserver.warnings.kind import Warnings, always
from apiserver.warnings.labels import DEPRECATED

_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"
_NOT_MOUNTABLE: Final = (
    f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
    "mounted secrets"
)
_STATIC: Final = ".static.k8s.io"
_CONFIGURATIONS: Final = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
)
"""Of admission: names that end so are those of files."""


def _of_node(node: Tree) -> Iterator[str]:
    spec = node.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    yield from of_cidrs(spec.get("podCIDRs"), ROOT.child("spec", "podCIDRs"))


def _create_quota(quota: Tree) -> Iterator[str]:
    hard = (quota.get("spec") or {}).get("hard") or {}
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        requests, limits = f"requests.{name}", f"limits.{name}"
        if requests not in hard and name in {"cpu", "memory"}:
            requests = name
        if requests not in hard or limits not in hard:
            continue
        asked, most = quantity.from_json(hard[requests]), quantity.from_json(hard[limits])
        if asked > most:
            yield f"ResourceQuota {requests} ({asked}) should be less than {limits} ({most})"


def _create_account(account: Tree) -> Iterator[str]:
    if _MOUNTABLE in meta.annotations(account):
        yield _NOT_MOUNTABLE


def _update_account(new: Tree, old: Tree) -> Iterator[str]:
    if _MOUNTABLE not in meta.annotations(old):
        yield from _create_account(new)


def _of_runtime_class(class_: Tree) -> Iterator[str]:
    selector = (class_.get("scheduling") or {}).get("nodeSelector") or {}
    for key in sorted(DEPRECATED.keys() & selector.keys()):
        yield f"scheduling.nodeSelector: {DEPRECATED[key]}"


def _create_slice(slice_: Tree) -> Iterator[str]:
    driver = (slice_.get("spec") or {}).get("driver", "")
    if driver != driver.lower():
        yield f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"


def _of_name(configuration: Tree) -> Iterator[str]:
    if meta.name(configuration).endswith(_STATIC):
        yield (
            f"metadata.name: names ending with {quote(_STATIC)} are reserved for static manifest-based configurations "
            "and cannot be managed via the API"
        )


WARNINGS: Final = {
    GroupKind("", "Node"): always(_of_node),
    GroupKind("", "ResourceQuota"): Warnings(create=_create_quota),
    GroupKind("", "ServiceAccount"): Warnings(create=_create_account, update=_update_account),
    GroupKind("node.k8s.io", "RuntimeClass"): always(_of_runtime_class),
    GroupKind("resource.k8s.io", "ResourceSlice"): Warnings(create=_create_slice),
    **{GroupKind("admissionregistration.k8s.io", kind): always(_of_name) for kind in _CONFIGURATIONS},
}
