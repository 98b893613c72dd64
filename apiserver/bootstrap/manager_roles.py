"""The additional roles of mockube: of its control, of its metrics, and of its controller manager, which also runs the scheduler, the provisioner and the kubelets.

Upstream's controllers are authenticated as service accounts, which have upstream's roles. The others are authenticated
as the manager, whose group has upstream's roles for schedulers and nodes, and a role for simulated objects.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery import clock_readings, lease_renewals
from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.schema import minors
from mockube.apiserver.authz.rbac.policy import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
)
from mockube.apiserver.pki.cert_dir import MANAGER_GROUP
from mockube.component_base.packs import load_pack

from .rbac import policy, resource_name
from .required_object import RequiredObject

_NAME: Final = MANAGER_GROUP
_UPSTREAM: Final = ("system:kube-scheduler", "system:volume-scheduler", "system:node")
_CONTROLLER: Final = "system:controller:"
"""The prefix of upstream's roles for single controllers."""
_MANAGER: Final = "system:kube-controller-manager"
_ALL: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
_WRITE: Final = ["create", "delete", "patch", "update"]


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Mapping[str, Any]:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": list(resources)}


_RULES: Final = (
    _rule("", ["nodes", "pods"], _ALL),
    _rule("", ["nodes/status", "pods/status"], ["patch", "update"]),
    _rule("", ["persistentvolumes", "persistentvolumeclaims"], _ALL),
    _rule("", ["persistentvolumes/status", "persistentvolumeclaims/status"], ["patch", "update"]),
    _rule("storage.k8s.io", ["storageclasses", "volumeattachments"], _ALL),
    _rule("storage.k8s.io", ["volumeattachments/status"], ["patch", "update"]),
    _rule("", ["events"], ["list"]),  # for the journals of nodes
    _rule("coordination.k8s.io", ["leases"], _ALL),
    {"verbs": ["post"], "nonResourceURLs": [lease_renewals.PATH]},
    {"verbs": ["get"], "nonResourceURLs": [clock_readings.PATH]},
    _rule("networking.k8s.io", ["ingresses/status"], ["patch"]),
    _rule(
        "gateway.networking.k8s.io",
        ["gateways/status", "httproutes/status", "gatewayclasses/status"],
        ["patch"],
    ),
    # kwok's objects, which define the logs and the behavior of simulated containers.
    _rule("kwok.x-k8s.io", ["*"], ["get", "list"]),
)
_SYSTEM_RULES: Final = (_rule("", ["configmaps"], _WRITE),)
"""The rules in kube-system, which contains a ConfigMap with the number of nodes."""
_SYSTEM: Final = "kube-system"


def roles_of_metrics() -> Sequence[RequiredObject]:
    """Return metrics-server's role, which is aggregated to upstream's roles for users: readers of objects may read their metrics."""
    rules = [_rule("metrics.k8s.io", ["pods", "nodes"], ["get", "list", "watch"])]
    parts = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("view", "edit", "admin")}
    content = {"metadata": {"labels": parts, "annotations": {}}, "rules": rules}
    return (_required_object(CLUSTER_ROLES, "system:aggregated-metrics-reader", content),)


def roles_of_control() -> Sequence[RequiredObject]:
    """Return the role for the group of control, which is aggregated to no other role."""
    of_objects = {"verbs": ["*"], "apiGroups": [CONTROL], "resources": ["*"]}
    of_clock = {"verbs": ["get"], "nonResourceURLs": [clock_readings.PATH]}  # participants follow it
    return (_required_object(CLUSTER_ROLES, "mockube:control", {"rules": [of_objects, of_clock]}),)


def roles_of_manager(packs: Iterable[str] = ()) -> Sequence[RequiredObject]:
    """Return the roles of the manager and their bindings; controllers of packs have its permissions."""
    rules_of_packs = [rule for pack in packs for rule in load_pack(pack).roles]
    return (
        _required_object(CLUSTER_ROLES, _NAME, {"rules": [*_RULES, *rules_of_packs]}),
        _required_object(ROLES, _NAME, {"rules": list(_SYSTEM_RULES)}, namespace=_SYSTEM),
        _required_object(CLUSTER_ROLE_BINDINGS, _NAME, _binding("ClusterRole", _NAME)),
        *(
            _required_object(
                CLUSTER_ROLE_BINDINGS,
                f"{_NAME}:{role.removeprefix('system:')}",
                _binding("ClusterRole", role),
            )
            for role in _UPSTREAM
        ),
        _required_object(ROLE_BINDINGS, _NAME, _binding("Role", _NAME), namespace=_SYSTEM),
    )


def roles_of_single_user(minor: str = minors.NEWEST) -> Sequence[RequiredObject]:
    """Return the role of a manager whose controllers share one user: upstream's rules for each of them."""
    rules = {
        orjson.dumps(rule): rule
        for required_object in policy(minor)
        if required_object.resource == resource_name(CLUSTER_ROLES)
        and required_object.name.startswith(_CONTROLLER)
        for rule in required_object.content["rules"]
    }
    name = f"{_NAME}:controllers"
    return (
        _required_object(CLUSTER_ROLES, name, {"rules": [*rules.values()]}),
        _required_object(CLUSTER_ROLE_BINDINGS, name, _binding("ClusterRole", name)),
        _required_object(CLUSTER_ROLE_BINDINGS, f"{_NAME}:manager", _binding("ClusterRole", _MANAGER)),
    )


def _required_object(
    resource: str, name: str, content: dict[str, Any], *, namespace: str = ""
) -> RequiredObject:
    metadata: dict[str, Any] = {"labels": {}, "annotations": {}}
    return RequiredObject(
        resource=resource_name(resource),
        name=name,
        namespace=namespace,
        content={"metadata": metadata, **content},
        skips_admission=True,
    )


def _binding(kind: str, name: str) -> dict[str, Any]:
    subject = {"kind": "Group", "apiGroup": GROUP, "name": MANAGER_GROUP}
    return {"subjects": [subject], "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}}
