"""Why a RoleBinding or a ClusterRoleBinding grants nothing: its role, or a ServiceAccount, does not exist."""

from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.counted import counted

from .commands import kubectl
from .explanation import Evidence, Explanation, Origin, Remedy, no_problem
from .facts import Facts
from .remedies import created

GROUP: Final = "rbac.authorization.k8s.io"
BINDINGS: Final = (GroupResource(GROUP, "rolebindings"), GroupResource(GROUP, "clusterrolebindings"))
_ROLES: Final = {
    "Role": (GroupResource(GROUP, "roles"), True),
    "ClusterRole": (GroupResource(GROUP, "clusterroles"), False),
}
"""The resources of roles, and whether they have namespaces."""
_SUBJECTS: Final = {"ServiceAccount": GroupResource("", "serviceaccounts")}
"""The subjects that are objects: users and groups are not."""


def explain_binding(binding: ReadOnlyTree, facts: Facts) -> Explanation:
    kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
    resource, is_namespaced = _ROLES[kind]
    namespace = meta.namespace(binding) if is_namespaced else ""
    subjects = binding.get("subjects") or ()
    evidence = [
        Evidence(text=f"roleRef is the {kind} {name}", source="roleRef"),
        *(Evidence(text=f"{each['kind']} {each['name']}", source="subjects") for each in subjects),
    ]
    if facts.is_missing(resource, namespace, name):
        return Explanation(
            cause=f"it grants nothing: the {kind} {name} does not exist",
            evidence=evidence,
            remedies=[
                Remedy(text=f"The {kind}s:", command=kubectl("get", f"{kind.lower()}s", namespace=namespace)),
                Remedy(text=f"Create the {kind} {name}."),
                Remedy(
                    text="Or bind another one: roleRef cannot be changed, so delete the binding, and create it again."
                ),
            ],
            origins=[
                Origin.named(f"{GROUP}/v1", kind, namespace, name),
                Origin.of(binding, "roleRef"),
            ],
        )
    if not subjects:
        return Explanation(
            cause="it grants nothing: it has no subjects",
            evidence=evidence,
            remedies=[Remedy(text="Add subjects: users, groups or ServiceAccounts.")],
            origins=[Origin.of(binding, "subjects")],
        )
    for each in subjects:
        place = each.get("namespace") or meta.namespace(binding)
        subject = _SUBJECTS.get(each["kind"])
        if subject is not None and facts.is_missing(subject, place, each["name"]):
            account = {
                "apiVersion": "v1",
                "kind": each["kind"],
                "metadata": {"name": each["name"], "namespace": place},
            }
            return Explanation(
                cause=f"it grants the {kind} {name} to the {each['kind']} {each['name']}, which does not exist in {place}",
                evidence=evidence,
                remedies=[
                    created("Create it:", account, each["kind"].lower(), each["name"]),
                    Remedy(text="Or name another subject."),
                ],
                origins=[
                    Origin.named("v1", each["kind"], place, each["name"]),
                    Origin.of(binding, "subjects"),
                ],
            )
    return no_problem(
        f"it grants the {kind} {name} to {counted(len(subjects), 'subject', 'subjects')}", *evidence
    )
