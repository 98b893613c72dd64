"""Reads what a cluster publishes from its API server."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import structs

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import CONFIG_MAPS, ENDPOINT_SLICES, INGRESSES, SERVICES
from mockube.client.resources import AnyResource, Key
from mockube.client.verbs import Client
from mockube.failure import Failure, Missing
from mockube.publisher.bindings import ADDRESS, RECORD
from mockube.publisher.gateway_kinds import GATEWAYS

from . import addresses
from .addresses import Published, PublishedUrl

_SERVICE_NAME = "kubernetes.io/service-name"


_KINDS: Final[Mapping[str, tuple[AnyResource, Callable[..., Iterable[PublishedUrl]]]]] = {
    addresses.SERVICE: (SERVICES, addresses.service_urls),
    addresses.INGRESS: (INGRESSES, addresses.ingress_urls),
    addresses.GATEWAY: (GATEWAYS, addresses.gateway_urls),
}


class NotYet(Exception):
    """Nothing answers now, but something may soon; the message says what is missing."""


async def read_published(client: Client) -> Published | None:
    """Return where a cluster publishes; None if it does not."""
    try:
        config_map = await client.get(CONFIG_MAPS, RECORD)
    except NotFound:
        return None
    record = config_map.get("data") or {}
    return Published(record=record) if ADDRESS in record else None


async def read_all(client: Client, published: Published, namespace: str) -> Sequence[PublishedUrl]:
    """Return all URLs, sorted; the note of a Service without a ready endpoint says so."""
    found = list[PublishedUrl]()
    slices = await _slices_by_service(client, namespace)
    for resource, urls in _KINDS.values():
        try:
            objects = await client.list(resource, namespace)
        except NotFound:  # the definitions of Gateways are not installed
            continue
        for each in objects.items:
            found += (_with_endpoints(url, each, slices) for url in urls(each, published))
    return sorted(found, key=lambda each: (each.namespace, each.kind, each.object_name))


async def read_http(
    client: Client, published: Published, kind: str, key: Key, *, uses_tls: bool
) -> Sequence[PublishedUrl]:
    """Return the URLs of an Ingress or a Gateway; raise `NotYet` while nothing answers there."""
    resource, urls = _KINDS[kind]
    try:
        tree = await client.get(resource, key)
    except NotFound:
        raise Missing(f'{resource.plural} "{key.name}" not found in namespace {key.namespace}') from None
    found = [*urls(tree, published, uses_tls=uses_tls)]
    if found and not any(each.url for each in found):
        raise NotYet(f'{kind} "{key.name}" has no address: {found[0].note}')
    return found


async def read_service(
    client: Client, published: Published, key: Key, *, port: str, uses_tls: bool
) -> Sequence[PublishedUrl]:
    """Return the URLs of a Service; raise `NotYet` while nothing answers there."""
    try:
        service = await client.get(SERVICES, key)
    except NotFound:
        raise await _missing(client, key) from None
    problem = addresses.service_problem(service)
    if problem is not None:
        raise problem
    urls = [*addresses.service_urls(service, published, uses_tls=uses_tls)]
    if not urls or _waits_for_address(service):
        node_port = f"; its node port is served at {urls[0].url}" if urls and urls[0].url else ""
        raise NotYet(_no_address(service) + node_port)
    urls = [*addresses.select_port(urls, port, key.name)]
    for each in urls:
        if not each.url:
            raise Failure(f'port {each.port} of service "{key.name}" is not published: {each.note}')
    if problem_of_endpoints := await _problem_of_endpoints(client, service):
        raise NotYet(f'service "{key.name}" {problem_of_endpoints}; its URL is {urls[0].url}')
    return urls


async def _missing(client: Client, key: Key) -> Missing:
    services = await client.list(SERVICES)
    others = [meta.namespace(each) for each in services.items if meta.name(each) == key.name]
    hint = f": there is one in namespace {others[0]}, use -n {others[0]}" if others else ""
    return Missing(f'services "{key.name}" not found in namespace {key.namespace}{hint}')


def _waits_for_address(service: ReadOnlyTree) -> bool:
    """Return whether the controller of this cluster still has to give a load balancer its address."""
    spec, status = service["spec"], (service.get("status") or {}).get("loadBalancer") or {}
    is_own = spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass")
    return is_own and not status.get("ingress")


def _no_address(service: ReadOnlyTree) -> str:
    name, spec = meta.name(service), service["spec"]
    if spec.get("loadBalancerClass"):
        return f'service "{name}" has no address: nothing implements its loadBalancerClass {spec["loadBalancerClass"]}'
    return f'the load balancer of service "{name}" has no address: `kubectl describe svc {name}` may say why'


async def _problem_of_endpoints(client: Client, service: ReadOnlyTree) -> str:
    """Return why no endpoint of a Service is ready; "" if one is."""
    label = f"{_SERVICE_NAME}={meta.name(service)}"
    slices = await client.list(ENDPOINT_SLICES, meta.namespace(service), label_selector=label)
    return _problem_of_slices(service, slices.items)


async def _slices_by_service(client: Client, namespace: str) -> Mapping[Key, Sequence[ReadOnlyTree]]:
    found = defaultdict[Key, list[ReadOnlyTree]](list)
    for each in (await client.list(ENDPOINT_SLICES, namespace)).items:
        found[Key(meta.namespace(each), meta.labels(each).get(_SERVICE_NAME, ""))].append(each)
    return found


def _with_endpoints(
    url: PublishedUrl, tree: ReadOnlyTree, slices: Mapping[Key, Sequence[ReadOnlyTree]]
) -> PublishedUrl:
    """Return a URL with a note if it is that of a Service without a ready endpoint."""
    if url.kind != addresses.SERVICE or not url.url or url.note:
        return url
    problem = _problem_of_slices(tree, slices.get(Key.of(tree), ()))
    return structs.replace(url, note=problem.removeprefix("has "))


def _problem_of_slices(service: ReadOnlyTree, slices: Iterable[ReadOnlyTree]) -> str:
    endpoints = [each for tree in slices for each in tree.get("endpoints") or ()]
    if any((each.get("conditions") or {}).get("ready") is not False for each in endpoints):
        return ""
    selector = ",".join(f"{key}={value}" for key, value in (service["spec"].get("selector") or {}).items())
    if not selector:
        return "has no ready endpoints: it has no selector, and no EndpointSlice names any"
    if not endpoints:
        return f"has no ready endpoints: no running pod matches its selector {selector}"
    return f"has no ready endpoints: none of its pods is ready (kubectl get pods -l {selector})"
