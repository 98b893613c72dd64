"""The priority levels and flow schemas that upstream suggests. Clients can read them; this server does not enforce them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery.schema import minors

from .required_object import RequiredObject

_GROUP = ("flowcontrol.apiserver.k8s.io", "v1")
FLOW_SCHEMAS, PRIORITY_LEVELS = (*_GROUP, "flowschemas"), (*_GROUP, "prioritylevelconfigurations")
MANAGER = "api-priority-and-fairness-config-producer-v1"
AUTOUPDATE = {"apf.kubernetes.io/autoupdate-spec": "true"}

REJECT: Mapping[str, Any] = {"type": "Reject"}


def _queue(queues: int, hand_size: int) -> Mapping[str, Any]:
    return {"type": "Queue", "queuing": {"queues": queues, "handSize": hand_size, "queueLengthLimit": 50}}


LIMITED: Mapping[str, tuple[int, int, Mapping[str, Any]]] = {
    "catch-all": (5, 0, REJECT),
    "system": (30, 33, _queue(64, 6)),
    "node-high": (40, 25, _queue(64, 6)),
    "leader-election": (10, 0, _queue(16, 4)),
    "workload-high": (40, 50, _queue(128, 6)),
    "workload-low": (100, 90, _queue(128, 6)),
    "global-default": (20, 50, _queue(128, 6)),
}
"""By name: nominal concurrency shares, the lendable percentage, and the limit response."""

_MANAGER = {"kind": "User", "user": {"name": "system:kube-controller-manager"}}
_SCHEDULER = {"kind": "User", "user": {"name": "system:kube-scheduler"}}
_SYSTEM_ACCOUNTS = {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}}


def _group_subject(name: str) -> Mapping[str, Any]:
    return {"kind": "Group", "group": {"name": name}}


_ALL_USERS = (_group_subject("system:unauthenticated"), _group_subject("system:authenticated"))


def _resources(
    verbs: Sequence[str], group: str, resources: Sequence[str], *, cluster: bool
) -> Mapping[str, Any]:
    scope = {"clusterScope": True} if cluster else {}
    return {"verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"]} | scope


_LEASES = ("coordination.k8s.io", ["leases"])
_ALL_REQUESTS = {
    "resourceRules": [_resources(["*"], "*", ["*"], cluster=True)],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
_PROBES = {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}
_ELECTION = {"resourceRules": [_resources(["get", "create", "update"], *_LEASES, cluster=False)]}
_NODES = {
    "resourceRules": [
        _resources(["*"], "", ["nodes", "nodes/status"], cluster=True),
        _resources(["*"], *_LEASES, cluster=False),
    ]
}


class Schema(NamedTuple):
    name: str
    level: str
    precedence: int
    distinguisher: str
    """The flow distinguisher."""
    subjects: Sequence[Mapping[str, Any]]
    rules: Mapping[str, Any]


SCHEMAS: Sequence[Schema] = (
    Schema("exempt", "exempt", 1, "", (_group_subject("system:masters"),), _ALL_REQUESTS),
    Schema("probes", "exempt", 2, "", _ALL_USERS, _PROBES),
    Schema(
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        (_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS),
        _ELECTION,
    ),
    Schema("system-node-high", "node-high", 400, "ByUser", (_group_subject("system:nodes"),), _NODES),
    Schema("system-nodes", "system", 500, "ByUser", (_group_subject("system:nodes"),), _ALL_REQUESTS),
    Schema("kube-controller-manager", "workload-high", 800, "ByNamespace", (_MANAGER,), _ALL_REQUESTS),
    Schema("kube-scheduler", "workload-high", 800, "ByNamespace", (_SCHEDULER,), _ALL_REQUESTS),
    Schema(
        "kube-system-service-accounts",
        "workload-high",
        900,
        "ByNamespace",
        (_SYSTEM_ACCOUNTS,),
        _ALL_REQUESTS,
    ),
    Schema(
        "service-accounts",
        "workload-low",
        9000,
        "ByUser",
        (_group_subject("system:serviceaccounts"),),
        _ALL_REQUESTS,
    ),
    Schema("global-default", "global-default", 9900, "ByUser", _ALL_USERS, _ALL_REQUESTS),
    Schema("catch-all", "catch-all", 10000, "ByUser", _ALL_USERS, _ALL_REQUESTS),
)


_ENDPOINTS: Final = {
    "resourceRules": [_resources(["get", "create", "update"], "", ["endpoints"], cluster=False)]
}
_OLD_ELECTION: Final = {
    "resourceRules": [
        _resources(["get", "create", "update"], "", ["endpoints", "configmaps"], cluster=False),
        *_ELECTION["resourceRules"],
    ]
}
_ENDPOINT_CONTROLLERS: Final = tuple(
    {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": name}}
    for name in ("endpoint-controller", "endpointslicemirroring-controller")
)
UNTIL_1_33: Sequence[Schema] = (
    Schema(
        "endpoint-controller", "workload-high", 150, "ByUser", (_MANAGER, *_ENDPOINT_CONTROLLERS), _ENDPOINTS
    ),
    Schema("workload-leader-election", "leader-election", 200, "ByUser", (_SYSTEM_ACCOUNTS,), _OLD_ELECTION),
)
"""Additional schemas of older minor releases."""


def flow_control(minor: str = minors.NEWEST) -> Sequence[RequiredObject]:
    schemas = [*SCHEMAS, *(UNTIL_1_33 if minors.is_before(minor, "1.34") else ())]
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    levels = [_level("exempt", exempt), *(_limited_level(name, *row) for name, row in LIMITED.items())]
    return [*levels, *(_schema(schema) for schema in schemas)]


def _level(name: str, spec: Mapping[str, Any]) -> RequiredObject:
    content = {"metadata": {"annotations": AUTOUPDATE}, "spec": spec}
    return RequiredObject(
        resource=PRIORITY_LEVELS, name=name, content=content, manager=MANAGER, skips_admission=True
    )


def _limited_level(name: str, shares: int, lendable: int, response: Mapping[str, Any]) -> RequiredObject:
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response}
    return _level(name, {"type": "Limited", "limited": limited})


def _schema(schema: Schema) -> RequiredObject:
    spec = {
        "priorityLevelConfiguration": {"name": schema.level},
        "matchingPrecedence": schema.precedence,
        "rules": [{"subjects": schema.subjects, **schema.rules}],
    }
    distinguisher = {"distinguisherMethod": {"type": schema.distinguisher}} if schema.distinguisher else {}
    return RequiredObject(
        resource=FLOW_SCHEMAS,
        name=schema.name,
        content={"metadata": {"annotations": AUTOUPDATE}, "spec": {**spec, **distinguisher}},
        manager=MANAGER,
        skips_admission=True,
    )
