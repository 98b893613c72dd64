"""Services against the pods that they select, and what sends requests to Services: Ingresses, routes, webhooks. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.labels import selector as label_selectors
from mockube.lint.findings import Outcome
from mockube.lint.objects import LintObject

from .existence import external, missing
from .fields import (
    ApiServiceFields,
    DefinitionFields,
    IngressFields,
    PortName,
    RouteFields,
    ServiceFields,
    ServicePort,
    StatefulSetFields,
    WebhookService,
    WebhooksFields,
)
from .hooks import hooks_of
from .kind_names import kind_problem
from .misspellings import misspelt_as
from .object_set import INGRESS, JOBS, SERVICE, STATEFUL_SET, ObjectSet, PodTemplate
from .problem import Problem
from .selections import mismatch

_EXTERNAL_NAME: Final = "ExternalName"
_NO_ADDRESS: Final = "None"
_ADMISSION: Final = "admissionregistration.k8s.io"
_GATEWAY: Final = "gateway.networking.k8s.io"
_ROUTES: Final = tuple(
    GroupKind(_GATEWAY, kind) for kind in ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute")
)
_ROUTE_TARGETS: Final = dict.fromkeys(("", SERVICE.kind), SERVICE)
"""The kinds of backends in the core group; a route that names none sends to a Service."""
_WEBHOOKS: Final = (
    GroupKind(_ADMISSION, "ValidatingWebhookConfiguration"),
    GroupKind(_ADMISSION, "MutatingWebhookConfiguration"),
)
_DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_API_SERVICE: Final = GroupKind("apiregistration.k8s.io", "APIService")


def service_selectors(objects: ObjectSet) -> Iterator[Problem]:
    """Find Services that select no pods although the files show which were meant."""
    for item, service in objects.decoded(ServiceFields, SERVICE):
        if service.spec.selector and service.spec.type != _EXTERNAL_NAME:
            selector = label_selectors.from_set(service.spec.selector)
            found = mismatch(objects, item, selector)
            if found is not None:
                is_broken = found.is_certain and not found.is_component
                outcome = None if is_broken else Outcome.WARNED
                yield Problem(item=item, field="spec.selector", message=found.reason, outcome=outcome)


def selected_pods(objects: ObjectSet, item: LintObject, service: ServiceFields) -> list[PodTemplate]:
    """Return the pods to which a Service sends requests. Those of Jobs and of helm's tests often have its labels, too."""
    if not service.spec.selector or service.spec.type == _EXTERNAL_NAME:
        return []
    pods = objects.matched(objects.namespace_of(item), label_selectors.from_set(service.spec.selector))
    return [pod for pod in pods if not _ends(pod)] or [*pods]


def _ends(pod: PodTemplate) -> bool:
    return pod.item.group_kind in JOBS or bool(hooks_of(pod.item))


def target_port_names(objects: ObjectSet) -> Iterator[Problem]:
    """Find names of target ports that no container of the selected pods has: the Service sends nothing there.

    The other ports of the Service work: charts have ports for what their defaults do not start.
    """
    for item, ports, pods in _target_ports(objects):
        missing_ports = [(i, each) for i, each in ports if not any(_has_port(pod, each) for pod in pods)]
        for index, port in missing_ports:
            named = [each for pod in pods for each in pod.ports if each.name == port.target]
            names = dict.fromkeys(each.name for pod in pods for each in pod.ports if each.name)
            if named:
                words = f'port "{port.target}" of {_titles(pods)} is one of {named[0].protocol}, not {port.protocol}'
            else:
                has = f"they have {', '.join(names)}" if names else "they have no named ports"
                words = f'no container of {_titles(pods)} has a port named "{port.target}": {has}'
            is_extra = (
                len(missing_ports) < len(ports) and not named and not misspelt_as(str(port.target), names)
            )
            outcome = Outcome.WARNED if is_extra else None
            yield Problem(item=item, field=_field(index, port), message=words, outcome=outcome)


def target_port_numbers(objects: ObjectSet) -> Iterator[Problem]:
    """Find numbers of target ports that the selected pods do not declare, although they declare others."""
    for item, ports, pods in _target_ports(objects):
        declared = dict.fromkeys(each.container_port for pod in pods for each in pod.ports)
        for index, port in ports:
            if not isinstance(port.target, str) and not any(_may_have_number(pod, port) for pod in pods):
                words = f"no container of {_titles(pods)} declares port {port.target} ({port.protocol})"
                yield Problem(
                    item=item,
                    field=_field(index, port),
                    message=f"{words}: they declare {', '.join(map(str, declared))}",
                )


def _target_ports(
    objects: ObjectSet,
) -> Iterator[tuple[LintObject, Sequence[tuple[int, ServicePort]], Sequence[PodTemplate]]]:
    """Yield each Service that sends to pods of the files, with its ports, their indexes, and these pods."""
    for item, service in objects.decoded(ServiceFields, SERVICE):
        pods = selected_pods(objects, item, service)
        is_headless = service.spec.cluster_ip == _NO_ADDRESS
        if pods and all(pod.is_complete for pod in pods) and not (is_headless and _is_for_names(service)):
            yield item, [*enumerate(service.spec.ports)], pods


def _is_for_names(service: ServiceFields) -> bool:
    """Return whether a headless Service has only one port because it needs one: its clients use the names of pods."""
    return len(service.spec.ports) == 1 and not isinstance(service.spec.ports[0].target, str)


def _has_port(pod: PodTemplate, port: ServicePort) -> bool:
    """Return whether a pod may have a port as a Service names it; a number needs no name."""
    if pod.may_get_containers or not isinstance(port.target, str):
        return True
    return any(each.name == port.target and each.protocol == port.protocol for each in pod.ports)


def _may_have_number(pod: PodTemplate, port: ServicePort) -> bool:
    if pod.may_get_containers or not pod.ports:
        return True
    declared = any(
        each.container_port == port.target and each.protocol == port.protocol for each in pod.ports
    )
    return declared or port.target in pod.mentioned_numbers


def _titles(pods: Sequence[PodTemplate]) -> str:
    return " and ".join(dict.fromkeys(pod.item.title for pod in pods))


def _field(index: int, port: ServicePort) -> str:
    return f"spec.ports[{index}].{'port' if port.target_port is None else 'targetPort'}"


# --- what sends requests to Services


class Backend(NamedTuple):
    """A reference to a Service and one of its ports."""

    item: LintObject
    field: str
    namespace: str
    name: str
    port: PortName | None
    port_field: str


def backends(objects: ObjectSet) -> Iterator[Problem]:
    """Find Ingresses, routes and webhooks whose Service cannot exist, or does not have the port."""
    yield from _misspelt_kinds(objects)
    for backend in _backends(objects):
        reason = missing(objects, SERVICE, backend.namespace, backend.name)
        if reason:
            yield Problem(item=backend.item, field=backend.field, message=reason)
            continue
        for item in objects.find(SERVICE, backend.namespace, backend.name):
            service = objects.decode(item, ServiceFields)
            if service is None or backend.port is None or service.spec.type == _EXTERNAL_NAME:
                continue
            ports = [name for each in service.spec.ports for name in (each.port, each.name) if name]
            if ports and backend.port not in ports:
                has = ", ".join(str(each) for each in ports)
                words = f'service "{backend.name}" has no port {_port_words(backend.port)}: it has {has}'
                yield Problem(item=backend.item, field=backend.port_field, message=words)


def external_backends(objects: ObjectSet) -> Iterator[Problem]:
    """Find Services of Ingresses, routes and webhooks that the cluster has to have already."""
    for backend in _backends(objects):
        if not objects.creates(("services",)):
            reason = external(objects, SERVICE, backend.namespace, backend.name)
            if reason:
                yield Problem(item=backend.item, field=backend.field, message=reason)


def _port_words(port: PortName) -> str:
    return f'named "{port}"' if isinstance(port, str) else str(port)


def _backends(objects: ObjectSet) -> Iterator[Backend]:
    for source in _SOURCES:
        for backend in source(objects):
            if backend.name:
                yield backend


def _ingress_backends(objects: ObjectSet) -> Iterator[Backend]:
    for item, ingress in objects.decoded(IngressFields, INGRESS):
        fields = [("spec.defaultBackend", ingress.spec.default_backend)]
        for i, rule in enumerate(ingress.spec.rules):
            for j, path in enumerate(rule.http.paths):
                fields.append((f"spec.rules[{i}].http.paths[{j}].backend", path.backend))
        for field, backend in fields:
            service = backend.service
            if service is not None:
                port = service.port.name or service.port.number or None
                inner = f"{field}.service"
                port_field = f"{inner}.port.{'name' if service.port.name else 'number'}"
                yield Backend(
                    item, f"{inner}.name", objects.namespace_of(item), service.name, port, port_field
                )


def _route_backends(objects: ObjectSet) -> Iterator[Backend]:
    for item, route in objects.decoded(RouteFields, *_ROUTES):
        for i, rule in enumerate(route.spec.rules):
            for j, reference in enumerate(rule.backend_refs):
                if not reference.group and reference.kind in _ROUTE_TARGETS:
                    field = f"spec.rules[{i}].backendRefs[{j}]"
                    namespace = reference.namespace or objects.namespace_of(item)
                    yield Backend(
                        item,
                        f"{field}.name",
                        namespace,
                        reference.name,
                        reference.port or None,
                        f"{field}.port",
                    )


def _misspelt_kinds(objects: ObjectSet) -> Iterator[Problem]:
    for item, route in objects.decoded(RouteFields, *_ROUTES):
        for i, rule in enumerate(route.spec.rules):
            for j, reference in enumerate(rule.backend_refs):
                reason = kind_problem(reference.kind, (reference.group,))
                if reason:
                    field = f"spec.rules[{i}].backendRefs[{j}].kind"
                    yield Problem(item=item, field=field, message=reason)


def _webhook_backends(objects: ObjectSet) -> Iterator[Backend]:
    for item, configuration in objects.decoded(WebhooksFields, *_WEBHOOKS):
        for index, webhook in enumerate(configuration.webhooks):
            yield from _client(item, webhook.client_config.service, f"webhooks[{index}].clientConfig.service")


def _conversion_backends(objects: ObjectSet) -> Iterator[Backend]:
    for item in objects.of(_DEFINITION):
        conversion = item.tree["spec"].get("conversion") if isinstance(item.tree.get("spec"), dict) else None
        if conversion:  # the rest of a definition is long
            definition = objects.decode(item, DefinitionFields)
            if definition is not None:
                service = definition.spec.conversion.webhook.client_config.service
                yield from _client(item, service, "spec.conversion.webhook.clientConfig.service")


def _api_service_backends(objects: ObjectSet) -> Iterator[Backend]:
    for item, api_service in objects.decoded(ApiServiceFields, _API_SERVICE):
        yield from _client(item, api_service.spec.service, "spec.service")


def _client(item: LintObject, service: WebhookService | None, field: str) -> Iterator[Backend]:
    if service is not None:
        yield Backend(item, f"{field}.name", service.namespace, service.name, service.port, f"{field}.port")


_SOURCES: Final[tuple[Callable[[ObjectSet], Iterator[Backend]], ...]] = (
    _ingress_backends,
    _route_backends,
    _webhook_backends,
    _conversion_backends,
    _api_service_backends,
)


def governing_services(objects: ObjectSet) -> Iterator[Problem]:
    """Find StatefulSets whose Service cannot exist or selects other pods: their pods have no names in DNS."""
    for item, stateful in objects.decoded(StatefulSetFields, STATEFUL_SET):
        name, namespace = stateful.spec.service_name, objects.namespace_of(item)
        if not name:
            continue
        reason = missing(objects, SERVICE, namespace, name)
        for found in objects.find(SERVICE, namespace, name):
            service = objects.decode(found, ServiceFields)
            if service is not None and service.spec.selector:
                pods = selected_pods(objects, found, service)
                if pods and not any(pod.item is item for pod in pods):
                    reason = (
                        f'service "{name}" selects pods of {_titles(pods)}, and not those of this StatefulSet'
                    )
        if reason:
            yield Problem(item=item, field="spec.serviceName", message=reason)
