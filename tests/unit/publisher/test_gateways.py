"""Which Gateways and HTTPRoutes are served, by which certificates, and what their status says."""

import asyncio
from base64 import b64encode

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from mockube.apimachinery.randomness import SystemRandom
from mockube.client import kinds
from mockube.component_base.clock import RealClock
from mockube.component_base.serving_certificates import self_signed_pair
from mockube.publisher.gateway_kinds import GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS
from mockube.publisher.gateways import CONTROLLER, CONTROLLERS, Gateways
from mockube.publisher.http_routing import Forward
from tests.support.publishing import VIEWED, FakeHttp, PublisherParts
from tests.unit.publisher.test_gateway_routing import gateway, listener, route, rule
from tests.unit.publisher.test_ingress_routing import request

GROUP = "gateway.networking.k8s.io"
PLURALS = ("gateways", "httproutes", "gatewayclasses")
OWN = (GATEWAYS, HTTP_ROUTES, GATEWAY_CLASSES, REFERENCE_GRANTS["v1beta1"], kinds.SECRETS)


def definition(plural, *, served=True, established="True", version="v1"):
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"versions": [{"name": version, "served": served}]},
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


def gateway_class(controller=CONTROLLER, name="c"):
    return {"metadata": {"name": name, "generation": 1}, "spec": {"controllerName": controller}}


def service(name="web", namespace="default"):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"ports": [{"port": 80}]}}


@pytest.fixture(scope="module")
def pair():
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.example")])
    names = x509.SubjectAlternativeName([x509.DNSName("shop.example")])
    return self_signed_pair(subject, names, now=RealClock().now(), random=SystemRandom())


def secret(pair, name="tls", namespace="default"):
    data = {key: b64encode(value).decode() for key, value in zip(("tls.crt", "tls.key"), pair, strict=True)}
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


class Cluster(PublisherParts):
    def __init__(self):
        super().__init__()
        self.http = FakeHttp()
        self.gateways = Gateways(self.context, self.http)

    async def start(self):
        await self.sync(*VIEWED, *OWN)
        self._task = asyncio.create_task(self.gateways.run())
        await self.settle()

    async def end(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def decide(self, *arguments, **fields):
        (router,) = self.http.routers
        decision = router.decide(request(*arguments, **fields))
        return decision.backend[1] if isinstance(decision, Forward) else decision.status

    def status(self, resource, name, namespace="default"):
        return self.informers.of(resource).lister.get(namespace, name).get("status") or {}

    @property
    def attached(self):
        return [each["attachedRoutes"] for each in self.status(GATEWAYS, "gw")["listeners"]]

    def conditions(self, resource, name):
        parent = self.status(resource, name)["parents"][0]
        return {each["type"]: each["reason"] for each in parent["conditions"]}


@pytest.fixture
async def cluster():
    made = Cluster()
    made.put(kinds.CUSTOM_RESOURCE_DEFINITIONS, *map(definition, PLURALS))
    made.put(kinds.CUSTOM_RESOURCE_DEFINITIONS, definition("referencegrants", version="v1beta1"))
    await made.start()
    yield made
    await made.end()


async def test_route_of_a_served_gateway_leads_to_its_service(cluster):
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(kinds.SERVICES, service())
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, route("r", rule("web")))
    await cluster.settle()
    assert cluster.decide() == "web"
    assert cluster.http.users == {"gateway"}
    assert cluster.attached == [1]
    assert cluster.status(GATEWAY_CLASSES, "c", "")["conditions"][0]["reason"] == "Accepted"
    (parent,) = cluster.status(HTTP_ROUTES, "r")["parents"]
    assert parent["controllerName"] == CONTROLLER
    writes = len(cluster.client.writes)
    cluster.put(kinds.SERVICES, service())
    await cluster.settle()
    assert len(cluster.client.writes) == writes


@pytest.mark.parametrize("controller", sorted(CONTROLLERS))
async def test_gateways_of_known_controllers_are_served(cluster, controller):
    cluster.put(GATEWAY_CLASSES, gateway_class(controller))
    cluster.put(GATEWAYS, gateway())
    await cluster.settle()
    assert cluster.status(GATEWAYS, "gw")


@pytest.mark.parametrize("classes", [(), (gateway_class("example.org/other"),), (gateway_class(name="d"),)])
async def test_gateway_of_another_controller_is_not_served(cluster, classes):
    cluster.put(GATEWAY_CLASSES, *classes)
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, route("r", rule("web")))
    await cluster.settle()
    assert (cluster.client.writes, cluster.http.users, cluster.decide()) == ([], set(), 404)


async def test_gateway_is_served_once_its_class_is_and_until_it_is_removed(cluster):
    cluster.put(kinds.SERVICES, service())
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, route("r", rule("web")))
    await cluster.settle()
    assert cluster.decide() == 404
    cluster.put(GATEWAY_CLASSES, gateway_class())
    await cluster.settle()
    assert (cluster.decide(), cluster.attached) == ("web", [1])
    cluster.remove(GATEWAYS, gateway())
    await cluster.settle()
    assert (cluster.decide(), cluster.http.users) == (404, set())


async def test_removed_route_leads_nowhere(cluster):
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(kinds.SERVICES, service())
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, route("r", rule("web")), route("s", rule("web")))
    await cluster.settle()
    assert cluster.attached == [2]
    cluster.remove(HTTP_ROUTES, route("r"))
    await cluster.settle()
    assert cluster.attached == [1]
    cluster.remove(HTTP_ROUTES, route("s"))
    await cluster.settle()
    assert (cluster.attached, cluster.decide()) == ([0], 404)


async def test_route_follows_its_service(cluster):
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, route("r", rule("web")))
    await cluster.settle()
    assert cluster.conditions(HTTP_ROUTES, "r") == {"Accepted": "Accepted", "ResolvedRefs": "BackendNotFound"}
    cluster.put(kinds.SERVICES, service())
    await cluster.settle()
    assert cluster.conditions(HTTP_ROUTES, "r")["ResolvedRefs"] == "ResolvedRefs"
    cluster.remove(kinds.SERVICES, service())
    await cluster.settle()
    assert cluster.conditions(HTTP_ROUTES, "r")["ResolvedRefs"] == "BackendNotFound"


async def test_route_to_another_namespace_follows_its_grant(cluster):
    far = rule("web")
    far["backendRefs"][0]["namespace"] = "shop"
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(kinds.SERVICES, service(namespace="shop"))
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, route("r", far))
    await cluster.settle()
    assert cluster.conditions(HTTP_ROUTES, "r")["ResolvedRefs"] == "RefNotPermitted"
    spec = {
        "from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": "default"}],
        "to": [{"group": "", "kind": "Service"}],
    }
    grant = {"metadata": {"name": "g", "namespace": "shop"}, "spec": spec}
    cluster.put(REFERENCE_GRANTS["v1beta1"], grant)
    await cluster.settle()
    assert cluster.conditions(HTTP_ROUTES, "r")["ResolvedRefs"] == "ResolvedRefs"


def secure(name="https", secret="tls", hostname="shop.example", **reference):
    tls = {"certificateRefs": [{"name": secret, **reference}] if secret else []}
    return listener(name, "HTTPS", 443, hostname=hostname, tls=tls)


async def test_listener_has_the_certificate_of_its_secret(cluster, pair):
    cluster.put(kinds.SECRETS, secret(pair))
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(GATEWAYS, gateway(secure(), listener()))
    await cluster.settle()
    assert cluster.http.choose("SHOP.example") is not None
    assert cluster.http.choose("other.example") is None
    cluster.remove(GATEWAYS, gateway())
    await cluster.settle()
    assert cluster.http.choose("shop.example") is None


async def test_longest_pattern_of_a_host_has_its_certificate(cluster, pair):
    cluster.put(kinds.SECRETS, secret(pair), secret(pair, "other"))
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(GATEWAYS, gateway(secure("any", "other", ""), secure()))
    await cluster.settle()
    (_, any_host), (_, of_shop) = cluster.gateways._certificates[("default", "gw")]
    assert cluster.http.choose("shop.example") is of_shop.context
    assert cluster.http.choose("else.example") is any_host.context


@pytest.mark.parametrize(
    ("of_listener", "reason", "message"),
    [
        (secure(secret=""), "InvalidCertificateRef", "tls.certificateRefs is empty"),
        (secure(secret="none"), "InvalidCertificateRef", 'secret "default/none" does not exist'),
        (secure(namespace="shop"), "RefNotPermitted", 'secret "shop/tls" is in another namespace'),
    ],
)
async def test_listener_without_certificate_says_why_and_is_not_served(
    cluster, pair, of_listener, reason, message
):
    cluster.put(kinds.SECRETS, secret(pair, namespace="shop"))
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(kinds.SERVICES, service())
    cluster.put(GATEWAYS, gateway(of_listener))
    cluster.put(HTTP_ROUTES, route("r", rule("web")))
    await cluster.settle()
    (status,) = cluster.status(GATEWAYS, "gw")["listeners"]
    resolved = next(each for each in status["conditions"] if each["type"] == "ResolvedRefs")
    assert (resolved["reason"], resolved["message"].startswith(message)) == (reason, True)
    assert cluster.gateways._unserved == {("default", "gw", "https")}
    cluster.put(GATEWAYS, gateway())
    await cluster.settle()
    assert cluster.gateways._unserved == set()


async def test_gateway_follows_the_secrets_of_its_namespace(cluster, pair):
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(GATEWAYS, gateway(secure()))
    await cluster.settle()
    assert cluster.http.choose("shop.example") is None
    cluster.put(kinds.SECRETS, secret(pair))
    await cluster.settle()
    assert cluster.http.choose("shop.example") is not None


@pytest.mark.parametrize(
    "last", [definition("gatewayclasses", served=False), definition("gatewayclasses", established="False")]
)
async def test_nothing_is_watched_before_all_definitions_are_established(last):
    cluster = Cluster()
    cluster.put(kinds.CUSTOM_RESOURCE_DEFINITIONS, *map(definition, PLURALS[:2]), last)
    await cluster.start()
    assert not cluster.gateways._is_installed.is_set()
    assert not hasattr(cluster.gateways, "_gateways")
    cluster.put(kinds.CUSTOM_RESOURCE_DEFINITIONS, definition("gatewayclasses"))
    assert cluster.gateways._is_installed.is_set()
    await cluster.end()


def conditions_of(status):
    return {each["type"]: each["reason"] for each in status["conditions"]}


async def served(cluster, *trees):
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(kinds.SERVICES, service())
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, *(trees or [route("r", rule("web"))]))
    await cluster.settle()


@pytest.mark.parametrize("plural", PLURALS)
async def test_each_definition_is_needed(plural):
    cluster = Cluster()
    others = [definition(each) for each in PLURALS if each != plural]
    cluster.put(kinds.CUSTOM_RESOURCE_DEFINITIONS, *others, definition(plural, version="v1beta1"))
    await cluster.start()
    assert not cluster.gateways._is_installed.is_set()
    await cluster.end()


@pytest.mark.parametrize("version", ["v1", "v1beta1", None])
async def test_grants_are_read_in_the_version_that_is_served(version):
    cluster = Cluster()
    cluster.put(kinds.CUSTOM_RESOURCE_DEFINITIONS, *map(definition, PLURALS))
    if version is not None:
        cluster.put(kinds.CUSTOM_RESOURCE_DEFINITIONS, definition("referencegrants", version=version))
    await cluster.sync(*REFERENCE_GRANTS.values())
    await cluster.start()
    grants = cluster.gateways._grants
    assert (grants and grants.resource) == (REFERENCE_GRANTS.get(version) if version else None)
    await cluster.end()


async def test_class_that_is_given_to_another_controller_ends_its_gateways(cluster):
    await served(cluster)
    assert cluster.decide() == "web"
    cluster.put(GATEWAY_CLASSES, gateway_class("example.org/other"))
    await cluster.settle()
    assert (cluster.decide(), cluster.http.users) == (404, set())
    cluster.put(GATEWAY_CLASSES, gateway_class())
    await cluster.settle()
    assert (cluster.decide(), cluster.http.users) == ("web", {"gateway"})


async def test_ports_are_open_until_the_last_gateway_is_removed(cluster):
    await served(cluster)
    other = gateway()
    other["metadata"]["name"] = "second"
    cluster.put(GATEWAYS, other)
    await cluster.settle()
    cluster.remove(GATEWAYS, gateway())
    await cluster.settle()
    assert cluster.http.users == {"gateway"}
    cluster.remove(GATEWAYS, other)
    await cluster.settle()
    assert cluster.http.users == set()


async def test_status_of_a_route_has_the_controller_of_its_class(cluster):
    cluster.put(GATEWAY_CLASSES, gateway_class("istio.io/gateway-controller"))
    cluster.put(kinds.SERVICES, service())
    cluster.put(GATEWAYS, gateway())
    cluster.put(HTTP_ROUTES, route("r", rule("web")))
    await cluster.settle()
    (parent,) = cluster.status(HTTP_ROUTES, "r")["parents"]
    assert parent["controllerName"] == "istio.io/gateway-controller"


async def test_route_follows_its_gateway(cluster):
    await served(cluster)
    cluster.put(GATEWAYS, gateway(listener("http", "TCP", 9)))
    await cluster.settle()
    assert (cluster.decide(), cluster.attached) == (404, [0])
    assert cluster.conditions(HTTP_ROUTES, "r")["Accepted"] == "NotAllowedByListeners"
    cluster.put(GATEWAYS, gateway())
    await cluster.settle()
    assert (cluster.decide(), cluster.attached) == ("web", [1])


async def test_route_leaves_a_gateway_for_another_one(cluster):
    other = gateway()
    other["metadata"]["name"] = "second"
    cluster.put(GATEWAYS, other)
    await served(cluster)
    moved = route("r", rule("web"))
    moved["spec"]["parentRefs"] = [{"name": "second"}]
    cluster.put(HTTP_ROUTES, moved)
    await cluster.settle()
    attached = [
        [each["attachedRoutes"] for each in cluster.status(GATEWAYS, name)["listeners"]]
        for name in ("gw", "second")
    ]
    assert attached == [[0], [1]]
    assert cluster.gateways._routes_of["default", "gw"] == set()


async def test_route_leaves_a_service_for_another_one(cluster):
    await served(cluster)
    cluster.put(HTTP_ROUTES, route("r", rule("other")))
    await cluster.settle()
    assert cluster.gateways._users == {("default", "web"): set(), ("default", "other"): {("default", "r")}}
    writes = len(cluster.client.writes)
    cluster.remove(kinds.SERVICES, service())
    await cluster.settle()
    assert len(cluster.client.writes) == writes
    cluster.put(kinds.SERVICES, service("other"))
    await cluster.settle()
    assert cluster.decide() == "other"


async def test_gateway_keeps_the_listeners_without_certificate_of_others(cluster, pair):
    cluster.put(GATEWAY_CLASSES, gateway_class())
    other = gateway(secure(secret="none"))
    other["metadata"]["name"] = "second"
    cluster.put(GATEWAYS, gateway(secure()), other)
    await cluster.settle()
    assert cluster.gateways._unserved == {("default", "gw", "https"), ("default", "second", "https")}
    cluster.put(kinds.SECRETS, secret(pair))
    await cluster.settle()
    assert cluster.gateways._unserved == {("default", "second", "https")}
    cluster.remove(GATEWAYS, other)
    await cluster.settle()
    assert cluster.gateways._unserved == set()


async def test_secrets_of_other_namespaces_reach_no_gateway(cluster, pair):
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(GATEWAYS, gateway(secure()))
    await cluster.settle()
    added = []
    cluster.gateways._gateway_loop.add = added.append
    cluster.put(kinds.SECRETS, secret(pair, namespace="shop"), secret(pair))
    assert added == [("default", "gw")]


async def test_secret_that_is_no_certificate_is_told(cluster):
    cluster.put(kinds.SECRETS, {"metadata": {"name": "tls", "namespace": "default"}, "data": {}})
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(GATEWAYS, gateway(secure(), listener()))
    await cluster.settle()
    https, http = cluster.status(GATEWAYS, "gw")["listeners"]
    assert conditions_of(https)["ResolvedRefs"] == "InvalidCertificateRef"
    assert conditions_of(http)["ResolvedRefs"] == "ResolvedRefs"
    (condition,) = (each for each in https["conditions"] if each["type"] == "ResolvedRefs")
    assert condition["message"] == 'secret "default/tls" has no tls.crt or no tls.key'


async def test_listener_of_another_namespace_gets_its_certificate_by_a_grant(cluster, pair):
    spec = {
        "from": [{"group": GROUP, "kind": "Gateway", "namespace": "default"}],
        "to": [{"group": "", "kind": "Secret"}],
    }
    cluster.put(kinds.SECRETS, secret(pair, namespace="shop"))
    cluster.put(GATEWAY_CLASSES, gateway_class())
    cluster.put(GATEWAYS, gateway(secure(namespace="shop")))
    await cluster.settle()
    assert cluster.http.choose("shop.example") is None
    cluster.put(REFERENCE_GRANTS["v1beta1"], {"metadata": {"name": "g", "namespace": "shop"}, "spec": spec})
    await cluster.settle()
    assert cluster.http.choose("shop.example") is not None


async def test_backends_are_chosen_by_their_weights(cluster):
    cluster.put(kinds.SERVICES, service("other"))
    backends = [{"name": name, "port": 80, "weight": 1} for name in ("web", "other")]
    await served(cluster, route("r", {"backendRefs": backends}))
    assert {cluster.decide() for _ in range(64)} == {"web", "other"}
