"""Resources that are special in data only, a row each, and those that need a line of code."""

from apimachinery import conditions
from apimachinery.groups import GroupResource
from apiserver.resources.strategies.empty_lists import none_when_empty
from apiserver.resources.strategy import MAIN, METADATA, SPEC, STATUS, UNSUPPORTED, Request, Strategy, Tree

OWN_STATUS = {MAIN: STATUS, "status": (*SPEC, *METADATA)}
"""Where /status changes nothing but the status."""

_LOCAL = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def _begin_node(node: Tree, _request: Request) -> None:
    _drop_config(node)


def _keep_config(new: Tree, old: Tree, _request: Request) -> None:
    if "configSource" not in old.get("spec", {}):
        _drop_config(new)


def _drop_config(node: Tree) -> None:
    """Kubelets are no longer configured through their node."""
    for part, field in (("spec", "configSource"), ("status", "config")):
        if field in node.get(part, {}):
            node[part] = {name: value for name, value in node[part].items() if name != field}


def _name_limit_range(limit_range: Tree, _request: Request) -> None:
    metadata = limit_range["metadata"]
    metadata["name"] = metadata.get("name") or metadata["uid"]


def _refer_to_secrets_by_name(account: Tree, _request: Request) -> None:
    if secrets := account.get("secrets"):
        account["secrets"] = [{"name": secret["name"]} if "name" in secret else {} for secret in secrets]


def _update_account(new: Tree, _old: Tree, request: Request) -> None:
    _refer_to_secrets_by_name(new, request)


def _begin_api_service(service: Tree, request: Request) -> None:
    """An API that this server itself serves is there at once."""
    if not service.get("spec", {}).get("service"):
        service["status"] = {"conditions": conditions.updated((), _LOCAL, request.now)}


COUNTED = Strategy(generation=SPEC, first_generation=1)
COUNTED_CONDITIONAL = Strategy(generation=SPEC, first_generation=1, unconditional_update=False)
WEBHOOKS = Strategy(generation=(("webhooks",),), first_generation=1, unconditional_update=False)
UPSERTED = Strategy(create_on_update=True)
ROLES = Strategy(create_on_update=True, canonicalize=none_when_empty(("rules",)))
KEPT = Strategy(returns_deleted=True)

_ROWS = (
    ("", "events", Strategy(create_on_update=True, dependents=UNSUPPORTED)),
    (
        "",
        "limitranges",
        Strategy(
            create_on_update=True,
            prepare_create=_name_limit_range,
            canonicalize=none_when_empty(("spec", "limits")),
        ),
    ),
    (
        "",
        "nodes",
        Strategy(
            cleared=(),
            prepare_create=_begin_node,
            prepare_update={MAIN: _keep_config, "status": _keep_config},
        ),
    ),
    ("", "resourcequotas", KEPT),
    (
        "",
        "serviceaccounts",
        Strategy(
            prepare_create=_refer_to_secrets_by_name,
            prepare_update={MAIN: _update_account},
            returns_deleted=True,
        ),
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies validatingadmissionpolicies",
        COUNTED_CONDITIONAL,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings validatingadmissionpolicybindings",
        COUNTED_CONDITIONAL,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations validatingwebhookconfigurations",
        WEBHOOKS,
    ),
    (
        "apiregistration.k8s.io",
        "apiservices",
        Strategy(resets=OWN_STATUS, unconditional_update=False, prepare_create=_begin_api_service),
    ),
    ("coordination.k8s.io", "leases", Strategy(create_on_update=True, unconditional_update=False)),
    ("events.k8s.io", "events", Strategy(create_on_update=True, dependents=UNSUPPORTED)),
    (
        "flowcontrol.apiserver.k8s.io",
        "flowschemas prioritylevelconfigurations",
        Strategy(resets=OWN_STATUS, generation=SPEC, first_generation=1),
    ),
    ("networking.k8s.io", "ingresses ingressclasses networkpolicies", COUNTED),
    ("node.k8s.io", "runtimeclasses", Strategy(create_on_update=True, unconditional_update=False)),
    ("policy", "poddisruptionbudgets", COUNTED_CONDITIONAL),
    ("rbac.authorization.k8s.io", "roles clusterroles", ROLES),
    ("rbac.authorization.k8s.io", "rolebindings clusterrolebindings", UPSERTED),
    (
        "resource.k8s.io",
        "deviceclasses resourceslices",
        Strategy(generation=SPEC, first_generation=1, returns_deleted=True),
    ),
    (
        "resource.k8s.io",
        "resourceclaims",
        Strategy(
            resets=OWN_STATUS,
            returns_deleted=True,
            canonicalize=none_when_empty(("spec", "devices", "requests")),
        ),
    ),
    (
        "resource.k8s.io",
        "resourceclaimtemplates",
        Strategy(returns_deleted=True, canonicalize=none_when_empty(("spec", "spec", "devices", "requests"))),
    ),
    ("scheduling.k8s.io", "priorityclasses", Strategy(first_generation=1)),
)

STRATEGIES = {
    GroupResource(group, name): strategy for group, names, strategy in _ROWS for name in names.split()
}
