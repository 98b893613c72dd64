"""What refused a request, from the message of the server: a quota, a policy, a webhook, a rule of the kind."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.quantity import QuantityError
from mockube.apimachinery.quantity import parse as parse_quantity
from mockube.apimachinery.tree import ReadOnlyTree, Tree

from .commands import kubectl
from .explanation import Evidence, Origin, Remedy
from .facts import Facts, FieldPath, Member
from .remedies import MERGE, created, labelled, patched

LIMIT_RANGES: Final = GroupResource("", "limitranges")
WEBHOOK_CONFIGURATIONS: Final = (
    GroupResource("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    GroupResource("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
)
ENFORCED: Final = "pod-security.kubernetes.io/enforce"
_PRIORITY: Final = 1000
"""The value of a PriorityClass that is created as an example."""
POLICY_VERSION: Final = "admissionregistration.k8s.io/v1"


class Bound(Struct, frozen=True, kw_only=True):
    """An amount of a resource that the containers of a pod have to keep."""

    field: str
    """limits or requests."""
    resource: str
    amount: str
    is_least: bool
    """Whether they may have no less, or else no more."""

    def is_kept(self, value: str) -> bool:
        has, bound = parse_quantity(value), parse_quantity(self.amount)
        return not has < bound if self.is_least else not bound < has


class Refusal(Struct, frozen=True, kw_only=True):
    """What refused a request, and what would let it pass."""

    text: str
    remedies: Sequence[Remedy] = ()
    origins: Sequence[Origin] = ()
    policy: str = ""
    """The ValidatingAdmissionPolicy that refused."""
    is_withheld: bool = False
    """Whether the message of the policy was not recorded, because it may quote a value of a Secret."""
    webhook: str = ""
    """The webhook that refused, or could not be called."""
    is_failing: bool = False
    """Whether it could not be called."""
    evidence: Sequence[Evidence] = ()
    is_of_limits: bool = False
    """Whether a LimitRange of the namespace refused."""
    bound: Bound | None = None
    """What it demands of each container."""
    field: FieldPath = ()
    """The field of a pod's spec that names what refused it, or what it lacks."""


def refusal_of(message: str, namespace: str, *, count: int = 1) -> Refusal:
    """Return what a message says; of a message of unknown form, the message itself.

    `count` is how many objects like the one that was refused are missing.
    """
    for mark, read in _FORMS:
        if mark in message:
            return _quota(message, namespace, count) if read is _quota else read(message, namespace)
    return Refusal(text=message)


def _quoted_after(message: str, mark: str, quote: str = '"') -> str:
    """Return the quoted text after a mark; "" if there is none."""
    rest = message.partition(mark)[2]
    return rest.partition(quote)[2].partition(quote)[0] if quote in rest else ""


def _quota(message: str, namespace: str, count: int = 1) -> Refusal:
    name, _, amounts = message.partition("exceeded quota: ")[2].partition(", ")
    return Refusal(
        text=f"the ResourceQuota {name} is exhausted: {amounts}",
        remedies=[
            Remedy(
                text="What the quota counts:", command=kubectl("describe", "quota", name, namespace=namespace)
            ),
            *_raised(name, namespace, amounts, count),
        ],
        origins=[Origin.named("v1", "ResourceQuota", namespace, name, "spec", "hard")],
    )


def _raised(name: str, namespace: str, amounts: str, count: int) -> Iterator[Remedy]:
    """Yield the change of a quota that lets so many requests pass: what is used and requested, of what it lacks."""
    parts = {
        part: dict(each.partition("=")[::2] for each in values.split(","))
        for part, _, values in (each.partition(": ") for each in amounts.split(", "))
    }
    try:
        hard = {
            resource: str(sum([parse_quantity(amount)] * count, parse_quantity(parts["used"][resource])))
            for resource, amount in parts["requested"].items()
        }
    except (KeyError, QuantityError):  # of another form
        return
    quota: Tree = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
    }
    yield patched("Raise it, or delete what uses it:", quota, {"spec": {"hard": hard}}, media_type=MERGE)


def _quota_needs(message: str, namespace: str) -> Refusal:
    name, _, needed = message.partition("failed quota: ")[2].partition(": ")
    return Refusal(
        text=f"the ResourceQuota {name} requires what the object lacks: {needed}",
        remedies=[
            Remedy(text=f"Set {needed.removeprefix('must specify ')} in its containers."),
            Remedy(
                text="What the quota counts:", command=kubectl("describe", "quota", name, namespace=namespace)
            ),
        ],
        origins=[Origin.named("v1", "ResourceQuota", namespace, name, "spec", "hard")],
        field=("containers",),
    )


def _pod_security(message: str, namespace: str) -> Refusal:
    level = _quoted_after(message, "violates PodSecurity ")
    problems = message.partition(f'{level}": ')[2] or message
    return Refusal(
        text=f"Pod Security refuses the pod: it violates {level}: {problems}",
        remedies=[
            labelled(
                "Set the fields that the message names, or lower the level of the namespace:",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
                {ENFORCED: "privileged"},
            )
        ],
        origins=[Origin.named("v1", "Namespace", "", namespace, "metadata", "labels", ENFORCED)],
    )


def _webhook(message: str, _: str) -> Refusal:
    name = _quoted_after(message, "admission webhook ")
    detail = message.partition("denied the request")[2].lstrip(": ")
    return Refusal(
        text=f"the admission webhook {name} denied it: {detail or 'without an explanation'}", webhook=name
    )


def _failing_webhook(message: str, _: str) -> Refusal:
    name = _quoted_after(message, "failed calling webhook ")
    return Refusal(
        text=f"the admission webhook {name} cannot be called: {message.partition(': ')[2] or message}",
        remedies=[Remedy(text="Start its server.")],
        webhook=name,
        is_failing=True,
    )


def in_cluster(refusal: Refusal, namespace: str, facts: Facts) -> Refusal:
    """Return a refusal with the objects that refused: the configurations of a webhook, and the limits of the namespace."""
    if refusal.is_of_limits:
        limits = [Origin.of(each, "spec", "limits") for each in facts.list(LIMIT_RANGES, namespace)]
        return replace(refusal, origins=[*limits, *refusal.origins])
    if not refusal.webhook:
        return refusal
    found = [
        (configuration, webhook)
        for resource in WEBHOOK_CONFIGURATIONS
        for configuration in facts.list(resource)
        for webhook in configuration.get("webhooks") or ()
        if webhook.get("name") == refusal.webhook
    ]
    evidence = [
        Evidence(
            text=f"failurePolicy {webhook.get('failurePolicy')}, called at {_address(webhook['clientConfig'])}",
            source=f"{meta.kind(configuration)} {meta.name(configuration)}",
        )
        for configuration, webhook in found
    ]
    return replace(
        refusal,
        evidence=evidence,
        origins=[*_webhook_origins(found)],
        remedies=[
            *refusal.remedies,
            *(_ignored(*each) for each in found if refusal.is_failing),
            Remedy(
                text="The configurations of webhooks:",
                command=kubectl("get", "validatingwebhookconfigurations,mutatingwebhookconfigurations"),
            ),
        ],
    )


def _webhook_origins(found: Sequence[tuple[ReadOnlyTree, ReadOnlyTree]]) -> Iterator[Origin]:
    for configuration, webhook in found:
        yield Origin.of(configuration, "webhooks", Member(webhook["name"]))
    for _, webhook in found:
        if service := webhook["clientConfig"].get("service"):
            yield service_origin(service)


def service_origin(service: ReadOnlyTree) -> Origin:
    return Origin.named("v1", "Service", service["namespace"], service["name"])


def _ignored(configuration: ReadOnlyTree, webhook: ReadOnlyTree) -> Remedy:
    patch = {"webhooks": [{"name": webhook["name"], "failurePolicy": "Ignore"}]}
    return patched("Or let requests pass while it is away:", configuration, patch)


def _address(client: ReadOnlyTree) -> str:
    service = client.get("service")
    return (
        str(client.get("url")) if service is None else f"the Service {service['namespace']}/{service['name']}"
    )


def _policy(message: str, _: str) -> Refusal:
    name = _quoted_after(message, "ValidatingAdmissionPolicy ", "'")
    binding = _quoted_after(message, "with binding ", "'")
    detail = message.partition("denied request: ")[2]
    return Refusal(
        policy=name,
        text=f"the ValidatingAdmissionPolicy {name}, bound by {binding}, denied it: {detail}",
        is_withheld=not detail.strip(),
        remedies=[
            Remedy(
                text="Its expressions:",
                command=kubectl("get", "validatingadmissionpolicy", name, "-o", "yaml"),
            )
        ],
        origins=[
            Origin.named(POLICY_VERSION, "ValidatingAdmissionPolicy", "", name, "spec"),
            Origin.named(POLICY_VERSION, "ValidatingAdmissionPolicyBinding", "", binding, "spec"),
        ],
    )


def _service_account(message: str, namespace: str) -> Refusal:
    name = _quoted_after(message, "serviceaccount ")
    account: Tree = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
    }
    return Refusal(
        text=f"the ServiceAccount {name} does not exist",
        remedies=[created("Create it:", account, "serviceaccount", name)],
        origins=[Origin.of(account)],
        field=("serviceAccountName",),
    )


def _priority_class(message: str, _: str) -> Refusal:
    name = message.partition("no PriorityClass with name ")[2].partition(" ")[0]
    priority_class: Tree = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": _PRIORITY,
    }
    return Refusal(
        text=f"the PriorityClass {name} does not exist",
        remedies=[
            created("Create it, such as:", priority_class, "priorityclass", name, f"--value={_PRIORITY}")
        ],
        origins=[Origin.of(priority_class)],
        field=("priorityClassName",),
    )


def _runtime_class(message: str, _: str) -> Refusal:
    name = _quoted_after(message, "RuntimeClass ")
    return Refusal(
        text=f"the RuntimeClass {name} does not exist",
        remedies=[Remedy(text="Create it, or leave runtimeClassName out."), _existing("runtimeclasses")],
        origins=[Origin.named("node.k8s.io/v1", "RuntimeClass", "", name)],
        field=("runtimeClassName",),
    )


def _existing(resource: str) -> Remedy:
    return Remedy(text="Those that exist:", command=kubectl("get", resource))


def _limit_range(message: str, namespace: str) -> Refusal:
    return Refusal(
        text=f"a LimitRange of the namespace refuses it: {message.partition('is forbidden: ')[2] or message}",
        remedies=[
            Remedy(text="The limits:", command=kubectl("describe", "limitrange", namespace=namespace)),
        ],
        is_of_limits=True,
        field=("containers",),
        bound=_bound(message),
    )


def _bound(message: str) -> Bound | None:
    """Return what a LimitRange demands of each container, if the message says so."""
    found = _USAGE.search(message)
    if found is None:
        return None
    is_least = found["bound"] == "minimum"
    field = "requests" if is_least else "limits"
    return Bound(field=field, resource=found["resource"], amount=found["amount"], is_least=is_least)


_USAGE: Final = re.compile(
    r"(?P<bound>maximum|minimum) (?P<resource>\S+) usage per Container is (?P<amount>[^\s,]+?)(?:,|\. )"
)
_OVER_LIMIT: Final = re.compile(
    r'Invalid value: "(?P<amount>[^"]+)": must be less than or equal to (?P<resource>\S+) limit of (?P<limit>\S+)'
)


def _over_limit(message: str, namespace: str) -> Refusal:
    found = _OVER_LIMIT.search(message)
    if found is None:
        return Refusal(text=message)
    resource, amount = found["resource"], found["amount"]
    return Refusal(
        text=f"a container requests {amount} of {resource}, more than its limit of {found['limit']}, which a LimitRange gives to one without a limit of its own",
        remedies=[Remedy(text="The limits:", command=kubectl("describe", "limitrange", namespace=namespace))],
        is_of_limits=True,
        field=("containers",),
        bound=Bound(field="limits", resource=resource, amount=amount, is_least=True),
    )


def _escalation(message: str, _: str) -> Refusal:
    return Refusal(
        text=f"nobody may grant rights that they lack: {message}",
        remedies=[Remedy(text="Grant only what the user has, or give the user the verb escalate or bind.")],
    )


def _terminating(message: str, _: str) -> Refusal:
    return Refusal(text=f"the namespace is being deleted, so nothing is created in it: {message}")


_FORMS: Final[Sequence[tuple[str, Callable[[str, str], Refusal]]]] = (
    ("denied the request", _webhook),
    ("failed calling webhook ", _failing_webhook),
    ("ValidatingAdmissionPolicy ", _policy),
    ("exceeded quota: ", _quota),
    ("failed quota: ", _quota_needs),
    ("violates PodSecurity ", _pod_security),
    ("error looking up service account ", _service_account),
    ("no PriorityClass with name ", _priority_class),
    ('pod rejected: RuntimeClass "', _runtime_class),
    ("attempting to grant RBAC permissions", _escalation),
    ("because it is being terminated", _terminating),
    ("usage per Container is ", _limit_range),
    ("usage per Pod is ", _limit_range),
    ("must be less than or equal to ", _over_limit),
)
"""The texts by which a form of message is known, and what reads it. Webhooks and policies come first: what they say may be any text."""
