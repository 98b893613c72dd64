"""Why an Ingress leads nowhere: its class, its Services and their addresses, its certificates, and whether a controller serves it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_DEFAULT_INGRESS_CLASS, ANNOTATION_INGRESS_CLASS

from .backends import backend_problem
from .commands import kubectl
from .explanation import Evidence, Explanation, Origin, Remedy, no_problem, unknown
from .facts import Facts
from .records import find_events
from .remedies import patched

INGRESSES: Final = GroupResource("networking.k8s.io", "ingresses")
CLASSES: Final = GroupResource("networking.k8s.io", "ingressclasses")
SECRETS: Final = GroupResource("", "secrets")
_WARNINGS: Final = ("DuplicatePath", "BadCertificate")
"""The reasons of Events by which controllers say that they leave out a part of an Ingress."""


def explain_ingress(ingress: ReadOnlyTree, facts: Facts) -> Explanation:
    addresses = [*_addresses(ingress)]
    problem = None if addresses else _class_problem(ingress, facts)
    problem = problem or _backend_problem(ingress, facts) or _certificate_problem(ingress, facts)
    if problem is not None:
        return problem
    warnings = find_events(ingress, facts, _WARNINGS)
    if warnings:
        return Explanation(cause=warnings[0].text, evidence=warnings)
    if not addresses:
        return unknown(
            f"no controller of {_class_text(ingress)} has given it an address, and who that is is not known"
        )
    return no_problem(
        "its Services have ready addresses",
        Evidence(text=f"it is reached at {', '.join(addresses)}", source="status.loadBalancer"),
    )


def _addresses(ingress: ReadOnlyTree) -> Iterator[str]:
    for each in ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
        if address := each.get("ip") or each.get("hostname"):
            yield str(address)


def _class_name(ingress: ReadOnlyTree) -> str:
    """Return the name of its class; "" for the default one."""
    return (
        ingress["spec"].get("ingressClassName")
        or meta.annotations(ingress).get(ANNOTATION_INGRESS_CLASS)
        or ""
    )


def _class_text(ingress: ReadOnlyTree) -> str:
    name = _class_name(ingress)
    return f"the class {name}" if name else "the default class"


def _class_problem(ingress: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain an Ingress that no controller serves, because of its class."""
    name = _class_name(ingress)
    if not facts.may_list(CLASSES):
        return None
    classes = facts.list(CLASSES)
    names = ", ".join(sorted(map(meta.name, classes)))
    evidence = [
        Evidence(
            text=f"the classes are {names}" if names else "there are no classes", source="IngressClasses"
        )
    ]
    if name:
        if any(meta.name(each) == name for each in classes):
            return None
        return Explanation(
            cause=f"there is no IngressClass {name}, so that no controller serves it",
            evidence=evidence,
            remedies=[*_class_remedies(ingress, classes)],
            origins=[
                Origin.of(ingress, "spec", "ingressClassName"),
                Origin.named("networking.k8s.io/v1", "IngressClass", "", name),
            ],
        )
    if any(meta.annotations(each).get(ANNOTATION_DEFAULT_INGRESS_CLASS) == "true" for each in classes):
        return None
    return Explanation(
        cause="it names no class, and no IngressClass is the default one, so that no controller serves it",
        evidence=evidence,
        remedies=[*_class_remedies(ingress, classes)],
        origins=[Origin.of(ingress, "spec", "ingressClassName")],
    )


def _class_remedies(ingress: ReadOnlyTree, classes: Sequence[ReadOnlyTree]) -> Iterator[Remedy]:
    for each in classes[:1]:
        patch = {"spec": {"ingressClassName": meta.name(each)}}
        yield patched("Set spec.ingressClassName to one that exists:", ingress, patch)
    if not classes:
        yield Remedy(text="Install a controller of Ingresses with an IngressClass.")


def _backends(ingress: ReadOnlyTree) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what leads to a Service, such as a host with a path, and its name and port."""
    spec = ingress["spec"]
    default = (spec.get("defaultBackend") or {}).get("service")
    if default:
        yield "the default backend", default
    for rule in spec.get("rules") or ():
        for path in (rule.get("http") or {}).get("paths") or ():
            service = (path.get("backend") or {}).get("service")
            if service:
                yield f"{rule.get('host') or '*'}{path.get('path') or '/'}", service


def _backend_problem(ingress: ReadOnlyTree, facts: Facts) -> Explanation | None:
    for place, backend in _backends(ingress):
        problem = backend_problem(ingress, place, meta.namespace(ingress), backend, facts)
        if problem is not None:
            return problem
    return None


def _certificate_problem(ingress: ReadOnlyTree, facts: Facts) -> Explanation | None:
    namespace = meta.namespace(ingress)
    for each in ingress["spec"].get("tls") or ():
        name = each.get("secretName")
        if name and facts.is_missing(SECRETS, namespace, name):
            hosts = ", ".join(each.get("hosts") or ()) or "its hosts"
            return Explanation(
                cause=f"the Secret {name}, which has the certificate of {hosts}, does not exist: controllers use one of their own",
                evidence=[Evidence(text=f"secretName is {name}", source="spec.tls")],
                remedies=[
                    Remedy(
                        text="Create it:",
                        command=kubectl(
                            "create", "secret", "tls", name, "--cert=FILE", "--key=FILE", namespace=namespace
                        ),
                    )
                ],
                origins=[Origin.named("v1", "Secret", namespace, name)],
            )
    return None
