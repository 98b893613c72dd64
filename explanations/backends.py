"""Why a Service behind an Ingress or a route does not answer."""

from msgspec.structs import replace

from mockube.apimachinery.groups import SERVICES
from mockube.apimachinery.tree import ReadOnlyTree

from .commands import kubectl
from .explanation import Evidence, Explanation, ObjectName, Origin, Related, Remedy, unknown
from .facts import Facts
from .services import explain_service


def backend_problem(
    obj: ReadOnlyTree, place: str, namespace: str, backend: ReadOnlyTree, facts: Facts
) -> Explanation | None:
    """Explain why a Service does not answer, to which a place of an object leads, such as a host with a path.

    `backend` has its name and its `port` by number or name.
    """
    name = backend["name"]
    source = [Evidence(text=f"{place} leads to {name}", source="spec")]
    if facts.is_missing(SERVICES, namespace, name):
        return Explanation(
            cause=f"the Service {name}, to which {place} leads, does not exist",
            evidence=source,
            remedies=[
                Remedy(text="The Services:", command=kubectl("get", "services", namespace=namespace)),
                Remedy(text="Change the backend to one of them, or create the Service."),
            ],
            origins=[Origin.named("v1", "Service", namespace, name), Origin.of(obj, "spec")],
        )
    service = facts.find(SERVICES, namespace, name)
    if service is None:
        return unknown(f"it leads to the Service {name}, which you may not read")
    missing = _missing_port(service, backend.get("port") or {})
    if missing is not None:
        present = ", ".join(str(each["port"]) for each in service["spec"].get("ports") or ())
        return Explanation(
            cause=f"the Service {name}, to which {place} leads, has no port {missing}",
            evidence=[*source, Evidence(text=f"its ports are {present}", source="spec.ports of the Service")],
            remedies=[Remedy(text=f"Change the port of the backend to one of {present}.")],
            origins=[Origin.of(service, "spec", "ports"), Origin.of(obj, "spec")],
        )
    explanation = explain_service(service, facts)
    if explanation.state != "Explained":
        return None
    return replace(
        explanation,
        cause=f"the Service {name}, to which {place} leads, does not answer: {explanation.cause}",
        evidence=[*source, *explanation.evidence],
        related=[Related(object=ObjectName.of(service), cause=explanation.cause), *explanation.related],
    )


def _missing_port(service: ReadOnlyTree, reference: ReadOnlyTree) -> str | int | None:
    """Return the number or name of a backend's port, if the Service has no such port."""
    number, name = reference.get("number"), reference.get("name")
    ports = service["spec"].get("ports") or ()
    is_there = any(number == each["port"] or (name and name == each.get("name")) for each in ports)
    return None if is_there else number or name or ""
