"""Why a request was refused: by a Fault, by the authorizers, by admission, by the rules of its kind, by its version."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import CONTROL, PODS, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

from .commands import command, kubectl, namespace_flags
from .completion import completed
from .disruption import BUDGETS, explain_budget, selected_pods
from .explanation import Evidence, Explanation, Origin, Remedy, no_problem, unknown
from .facts import Allowed, Facts
from .others import DEFINITIONS
from .refusals import Refusal, in_cluster, refusal_of, service_origin
from .remedies import MERGE, patched
from .rights import action_text, bindings_of_user, granting, requested_path, resource_text

POLICIES: Final = GroupResource("admissionregistration.k8s.io", "validatingadmissionpolicies")
_ERRORS_FROM: Final = 400
_CONVERSION: Final = "conversion webhook for "


def explain_request(request: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a recorded request, with the groups of its user in its spec."""
    return completed(_explain(request, facts), facts)


def _explain(request: ReadOnlyTree, facts: Facts) -> Explanation:
    spec, status = request["spec"], request.get("status") or {}
    code, message = status.get("code"), status.get("message") or ""
    sent = Evidence(
        text=f"{spec.get('user') or 'nobody'} sent {spec.get('verb')} {spec.get('uri')} with {spec.get('agent') or 'no agent'}",
        source="Request",
        time=spec.get("time") or "",
    )
    fault = status.get("fault")
    if fault and status.get("isCut"):
        return _injected(fault, "cut the connection", [sent])
    if code is None and "seconds" in status:
        return unknown("the request ended without a response: its client left", sent)
    if code is None:
        return unknown("the request has no response yet, as a watch has none", sent)
    if code < _ERRORS_FROM:
        return no_problem(f"the request was answered with {code}", sent)
    evidence = [sent, Evidence(text=message or "the message was not recorded", source=f"response {code}")]
    if fault and status.get("answeredByFault"):
        return _injected(fault, f"answered with {code}", evidence)
    if fault:
        evidence.append(
            Evidence(
                text=f"the Fault {fault} was injected, which did not give the response", source="status.fault"
            )
        )
    if not message and code != _UNAUTHORIZED:
        return unknown(f"the request was answered with {code}, and its message was not recorded", *evidence)
    explain = _BY_CODE.get(code)
    if explain is None:
        return Explanation(cause=f"the server answered with {code}: {message}", evidence=evidence)
    return explain(spec, message, evidence, facts)


def _injected(fault: str, effect: str, evidence: Sequence[Evidence]) -> Explanation:
    return Explanation(
        cause=f"the Fault {fault} was injected, which {effect}",
        evidence=evidence,
        remedies=[Remedy(text="Remove it:", command=command("mockube", "fault", "remove", fault))],
        origins=[Origin.named(f"{CONTROL}/v1alpha1", "Fault", "", fault)],
    )


def _unauthorized(_: ReadOnlyTree, __: str, evidence: Sequence[Evidence], ___: Facts) -> Explanation:
    return Explanation(
        cause="the credentials of the request were not accepted: they are missing, wrong or expired",
        evidence=evidence,
        remedies=[Remedy(text="The kubeconfig of the cluster:", command="mockube kubeconfig")],
    )


# --- rights


def _forbidden(spec: ReadOnlyTree, message: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    if not _is_of_authorizers(message, spec.get("verb") or ""):
        return _by_admission(spec, message, evidence, facts)
    question = _question(spec)
    user, action = spec.get("user") or "", action_text(spec)
    allowed = facts.is_allowed(question)
    loss, origins = "", list[Origin]()
    lost = facts.loss_of(question, spec.get("time") or "")
    if lost is not None:
        origins = [Origin.of(lost, *filter(None, [lost["field"]]))]
        loss = _loss(lost)
    if allowed:
        return Explanation(
            cause=f"no rule let {user} {action} then{loss}; a rule does now",
            evidence=evidence,
            remedies=[Remedy(text="Send the request again.")],
            origins=origins,
        )
    reason = _reason_of_authorizer(message)
    if reason:
        return Explanation(cause=f"an authorizer does not let {user} {action}: {reason}", evidence=evidence)
    rule = f"no rule lets {user} {action}" if allowed is False else f"{user} was not allowed then to {action}"
    return Explanation(
        cause=f"{rule}{loss}",
        evidence=[*evidence, *bindings_of_user(spec, facts)],
        remedies=[*granting(spec)],
        origins=origins,
    )


def _loss(lost: ReadOnlyTree) -> str:
    namespace = f" of the namespace {meta.namespace(lost)}" if meta.namespace(lost) else ""
    end = f"its {lost['field']} were changed" if lost["field"] else "it was deleted"
    return f": the {meta.kind(lost)} {meta.name(lost)}{namespace} did, until {end}"


def _is_of_authorizers(message: str, verb: str) -> bool:
    """Return whether the authorizers refused, and not a webhook or a policy that says the same."""
    is_of_admission = "denied the request" in message or "ValidatingAdmissionPolicy " in message
    return 'forbidden: User "' in message and f" cannot {verb} " in message and not is_of_admission


def _reason_of_authorizer(message: str) -> str:
    """Return why an authorizer refused; "" if none gave a reason, or only RBAC, which finds no rule."""
    scope = next(
        (scope for scope in (" in the namespace ", " at the cluster scope", ' path "') if scope in message),
        "",
    )
    reason = message.partition(scope)[2].partition(": ")[2] if scope else ""
    return "" if reason.startswith("RBAC: ") else reason


def _question(spec: ReadOnlyTree) -> Allowed:
    is_resource = bool(spec.get("resource"))
    names = ("group", "version", "resource", "subresource", "namespace", "name")
    return Allowed(
        user=spec.get("user") or "",
        groups=tuple(spec.get("groups") or ()),
        verb=spec.get("verb") or "",
        path="" if is_resource else requested_path(spec),
        **({name: spec.get(name) or "" for name in names} if is_resource else {}),
    )


# --- what else refuses a request


def _by_admission(
    spec: ReadOnlyTree, message: str, evidence: Sequence[Evidence], facts: Facts
) -> Explanation:
    if message.startswith(_CONVERSION):
        return _conversion(spec, message, evidence, facts)
    namespace = spec.get("namespace") or ""
    refusal = in_cluster(refusal_of(message, namespace), namespace, facts)
    return Explanation(
        cause=f"{refusal.text}{_policy_messages(refusal, facts) if refusal.is_withheld else ''}",
        evidence=[*evidence, *_policy_rules(refusal, message, facts), *refusal.evidence],
        remedies=refusal.remedies,
        origins=refusal.origins,
    )


def _conversion(spec: ReadOnlyTree, message: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    """Explain custom objects that are stored in another version, whose conversion fails."""
    definition = facts.find(DEFINITIONS, "", f"{spec.get('resource')}.{spec.get('group')}")
    if definition is None:
        return Explanation(cause=message, evidence=evidence)
    conversion = definition["spec"].get("conversion") or {}
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    change = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    return Explanation(
        cause=message,
        evidence=evidence,
        remedies=[
            Remedy(text="Start the server of the conversion."),
            patched(
                "Or serve all versions as they are stored, if they have the same fields:",
                definition,
                change,
                media_type=MERGE,
            ),
        ],
        origins=[
            Origin.of(definition, "spec", "conversion"),
            *([service_origin(service)] if service else []),
        ],
    )


def _policy_messages(refusal: Refusal, facts: Facts) -> str:
    """Return what the policy itself says, which is no part of a Secret; what an expression makes is not recorded."""
    policy = facts.find(POLICIES, "", refusal.policy)
    validations = [] if policy is None else [*(policy["spec"].get("validations") or ())]
    messages = [each["message"] for each in validations if each.get("message")]
    if not messages or any("messageExpression" in each for each in validations):
        return "its message may quote a value of a Secret and is not recorded"
    return f"{'one of: ' if len(validations) > 1 else ''}{'; '.join(messages)}"


def _policy_rules(refusal: Refusal, message: str, facts: Facts) -> Iterator[Evidence]:
    """Yield the expressions of a policy whose message is that of the refusal, or all if none is."""
    policy = facts.find(POLICIES, "", refusal.policy) if refusal.policy else None
    validations = [] if policy is None else [*(policy["spec"].get("validations") or ())]
    matching = [each for each in validations if (each.get("message") or each["expression"]) in message]
    for each in matching or validations:
        text = each["expression"]
        if not matching and each.get("message"):
            text = f"{each['message']}: {text}"
        yield Evidence(text=text, source=f"ValidatingAdmissionPolicy {refusal.policy}")


def _invalid(spec: ReadOnlyTree, message: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    if "is invalid: " not in message:
        return _by_admission(spec, message, evidence, facts)
    problems = message.partition("is invalid: ")[2]
    group, resource = spec.get("group") or "", spec.get("resource") or ""
    name = f"{resource}.{group}" if group else resource
    definition = facts.find(DEFINITIONS, "", name) if "." in group else None
    rules = [] if definition is None else [*_schema_rules(definition, spec.get("version") or "", problems)]
    return Explanation(
        cause=f"the object breaks a rule of its kind: {problems}",
        evidence=[*evidence, *rules],
        remedies=[Remedy(text="What the fields mean:", command=kubectl("explain", name))],
    )


def _schema_rules(definition: ReadOnlyTree, version: str, problems: str) -> Iterator[Evidence]:
    """Yield the CEL rules of a definition whose messages are among the problems."""
    for each in definition["spec"].get("versions") or ():
        if each.get("name") == version:
            schema = (each.get("schema") or {}).get("openAPIV3Schema") or {}
            for rule in _rules_of(schema):
                text = rule.get("message") or f"failed rule: {rule.get('rule')}"
                if text in problems:
                    yield Evidence(
                        text=rule["rule"], source=f"CustomResourceDefinition {definition['metadata']['name']}"
                    )


def _rules_of(schema: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the rules in a schema and its parts."""
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            rules = part.get("x-kubernetes-validations")
            yield from rules if isinstance(rules, list) else ()
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _conflict(spec: ReadOnlyTree, message: str, evidence: Sequence[Evidence], _: Facts) -> Explanation:
    if "already exists" in message:
        return Explanation(cause="an object of this name exists already", evidence=evidence)
    if "the object has been modified" in message:
        cause = "the object was changed after the client had read it: its resourceVersion is an older one"
        remedies = [
            Remedy(text="Read it again, and repeat the change."),
            Remedy(
                text="Who changed it:",
                command=command(
                    "mockube",
                    "log",
                    f"{resource_text(spec).partition('/')[0]}/{spec.get('name') or 'NAME'}",
                    *namespace_flags(spec.get("namespace") or ""),
                ),
            ),
        ]
        return Explanation(cause=cause, evidence=evidence, remedies=remedies)
    if "Apply failed with " in message or "conflict with " in message:
        return Explanation(
            cause=f"another field manager owns fields that the request sets: {message}",
            evidence=evidence,
            remedies=[
                Remedy(
                    text="Leave the fields out, or take them over with `kubectl apply --server-side --force-conflicts`."
                )
            ],
        )
    return Explanation(cause=message, evidence=evidence)


def _not_found(_: ReadOnlyTree, message: str, evidence: Sequence[Evidence], __: Facts) -> Explanation:
    if "could not find the requested resource" in message:
        return Explanation(
            cause="the server serves no such resource: its group, version or name is wrong, or its definition is not installed",
            evidence=evidence,
            remedies=[Remedy(text="What is served:", command=kubectl("api-resources"))],
        )
    return Explanation(cause=f"it does not exist: {message}", evidence=evidence)


def _too_many(spec: ReadOnlyTree, message: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    if spec.get("subresource") == "eviction" and "disruption budget" in message:
        return _eviction(spec, message, evidence, facts)
    return Explanation(cause=f"the server asked the client to wait: {message}", evidence=evidence)


def _eviction(spec: ReadOnlyTree, message: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    """Explain an eviction that a PodDisruptionBudget forbids."""
    namespace, name = spec.get("namespace") or "", spec.get("name") or ""
    pod = facts.find(PODS, namespace, name)
    if pod is None:
        return unknown(f"a PodDisruptionBudget forbade the eviction of {name}: {message}", *evidence)
    budgets = [each for each in facts.list(BUDGETS, namespace) if selected_pods(each, [pod])]
    if not budgets:
        return unknown(f"no PodDisruptionBudget that you may list selects {name} now: {message}", *evidence)
    found = explain_budget(budgets[0], facts)
    names = ", ".join(map(meta.name, budgets))
    return Explanation(
        cause=f"the PodDisruptionBudget {names} forbids the eviction of the pod {name}: {found.cause}",
        evidence=[*evidence, *found.evidence],
        remedies=found.remedies,
        related=found.related,
        origins=found.origins or [Origin.of(budgets[0], "spec")],
    )


_UNAUTHORIZED: Final = 401
_BY_CODE: Final[Mapping[int, Callable[[ReadOnlyTree, str, Sequence[Evidence], Facts], Explanation]]] = {
    400: _by_admission,
    _UNAUTHORIZED: _unauthorized,
    403: _forbidden,
    404: _not_found,
    409: _conflict,
    422: _invalid,
    429: _too_many,
    500: _by_admission,
}
