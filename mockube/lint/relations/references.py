"""Names of ServiceAccounts, roles and classes in other objects. Pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from mockube.apimachinery.groups import GroupKind
from mockube.lint.objects import LintObject

from .existence import PRIORITY_CLASS, external, missing
from .fields import ClaimFields, IngressFields, RoleBindingFields
from .object_set import CLAIM, CLUSTER_ROLE, INGRESS, ROLE, SECRET, SERVICE_ACCOUNT, ObjectSet, PodTemplate
from .problem import Problem

RUNTIME_CLASS: Final = GroupKind("node.k8s.io", "RuntimeClass")
STORAGE_CLASS: Final = GroupKind("storage.k8s.io", "StorageClass")
INGRESS_CLASS: Final = GroupKind("networking.k8s.io", "IngressClass")
_RBAC: Final = "rbac.authorization.k8s.io"
_ROLES: Final = {each.kind: each for each in (ROLE, CLUSTER_ROLE)}
_ACCOUNTS: Final = {SERVICE_ACCOUNT.kind: SERVICE_ACCOUNT}
"""The subjects of bindings that are objects; users and groups are not."""
_BINDINGS: Final = (GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding"))
_CERTIFICATES: Final = "cert-manager.io/"


class NameReference(NamedTuple):
    item: LintObject
    field: str
    kind: GroupKind
    namespace: str
    name: str


def missing_accounts(objects: ObjectSet) -> Iterator[Problem]:
    yield from _missing(objects, _accounts(objects))


def missing_classes(objects: ObjectSet) -> Iterator[Problem]:
    yield from _missing(objects, _classes(objects))


def missing_secrets(objects: ObjectSet) -> Iterator[Problem]:
    yield from _missing(objects, _secrets(objects))


def missing_roles(objects: ObjectSet) -> Iterator[Problem]:
    yield from _missing(objects, _roles(objects))


def external_references(objects: ObjectSet) -> Iterator[Problem]:
    for source in (_accounts, _classes, _roles, _secrets):
        for reference in source(objects):
            if reference.kind is SERVICE_ACCOUNT and objects.creates(("serviceaccounts",)):
                continue
            reason = external(objects, *reference[2:])
            if reason:
                yield Problem(item=reference.item, field=reference.field, message=reason)


def _missing(objects: ObjectSet, references: Iterator[NameReference]) -> Iterator[Problem]:
    for reference in references:
        reason = missing(objects, *reference[2:])
        if reason:
            yield Problem(item=reference.item, field=reference.field, message=reason)


def _accounts(objects: ObjectSet) -> Iterator[NameReference]:
    """Yield the ServiceAccounts of pods, and those of bindings."""
    for pod in objects.all_pods():
        name = pod.spec.service_account_name or pod.spec.service_account
        if name and pod.is_complete:
            field = "serviceAccountName" if pod.spec.service_account_name else "serviceAccount"
            yield NameReference(pod.item, pod.field(field), SERVICE_ACCOUNT, pod.namespace, name)
    for item, binding in objects.decoded(RoleBindingFields, *_BINDINGS):
        for index, subject in enumerate(binding.subjects):
            if subject.kind in _ACCOUNTS and subject.name and not subject.api_group:
                namespace = subject.namespace or objects.namespace_of(item)
                if namespace:
                    yield NameReference(
                        item, f"subjects[{index}].name", SERVICE_ACCOUNT, namespace, subject.name
                    )


def _roles(objects: ObjectSet) -> Iterator[NameReference]:
    for item, binding in objects.decoded(RoleBindingFields, *_BINDINGS):
        name, kind = binding.role_ref.name, _ROLES.get(binding.role_ref.kind)
        if name and kind is not None:
            namespace = objects.namespace_of(item) if kind is ROLE else ""
            yield NameReference(item, "roleRef.name", kind, namespace, name)


def _classes(objects: ObjectSet) -> Iterator[NameReference]:
    for pod in objects.all_pods():
        for field, kind, name in _classes_of_pod(pod):
            if name:
                yield NameReference(pod.item, field, kind, "", name)
    for item, claim in objects.decoded(ClaimFields, CLAIM):
        if claim.spec.storage_class_name:
            yield NameReference(
                item, "spec.storageClassName", STORAGE_CLASS, "", claim.spec.storage_class_name
            )
    for item, ingress in objects.decoded(IngressFields, INGRESS):
        if ingress.spec.ingress_class_name:
            yield NameReference(
                item, "spec.ingressClassName", INGRESS_CLASS, "", ingress.spec.ingress_class_name
            )


def _classes_of_pod(pod: PodTemplate) -> Iterator[tuple[str, GroupKind, str]]:
    yield pod.field("priorityClassName"), PRIORITY_CLASS, pod.spec.priority_class_name
    yield pod.field("runtimeClassName"), RUNTIME_CLASS, pod.spec.runtime_class_name
    for index, claim in enumerate(pod.claims):
        field = f"spec.volumeClaimTemplates[{index}].spec.storageClassName"
        yield field, STORAGE_CLASS, claim.spec.storage_class_name
    for index, volume in pod.volumes:
        template = volume.ephemeral.volume_claim_template
        if template is not None:
            field = f"{pod.field('volumes')}[{index}].ephemeral.volumeClaimTemplate.spec.storageClassName"
            yield field, STORAGE_CLASS, template.spec.storage_class_name


def _secrets(objects: ObjectSet) -> Iterator[NameReference]:
    """Yield the Secrets of certificates and of registries, without which Ingresses and pods work in part."""
    for item, ingress in objects.decoded(IngressFields, INGRESS):
        if _CERTIFICATES.encode() not in item.body:
            for index, tls in enumerate(ingress.spec.tls):
                if tls.secret_name:
                    field = f"spec.tls[{index}].secretName"
                    yield NameReference(item, field, SECRET, objects.namespace_of(item), tls.secret_name)
    for pod in objects.all_pods():
        for index, reference in enumerate(pod.spec.image_pull_secrets):
            if reference.name:
                field = f"{pod.field('imagePullSecrets')}[{index}].name"
                yield NameReference(pod.item, field, SECRET, pod.namespace, reference.name)
