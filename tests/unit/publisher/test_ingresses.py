"""Which Ingresses are served, by which certificates, and what their status and Events say."""

import asyncio

import pytest

from mockube.client import kinds
from mockube.network.ingress import NGINX, TRAEFIK
from mockube.publisher.http_routing import Forward
from mockube.publisher.ingresses import Ingresses
from tests.support.publishing import ADDRESS, VIEWED, FakeHttp, PublisherParts
from tests.unit.publisher.test_gateways import pair, secret
from tests.unit.publisher.test_ingress_routing import ingress, request

__all__ = ["pair"]


def ingress_class(name="nginx", controller=NGINX, *, default=False):
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": controller}}


def shop(name="shop", *, of_class=None, tls=(), status=None, host="shop.example", **annotations):
    tree = ingress(name, ("/", "Prefix", name), host=host, **annotations)
    if of_class is not None:
        tree["spec"]["ingressClassName"] = of_class
    tree["spec"]["tls"] = [*tls]
    return {**tree, "status": status or {}}


class Cluster(PublisherParts):
    def __init__(self):
        super().__init__()
        self.http = FakeHttp()
        self.ingresses = Ingresses(self.context, self.http)

    async def start(self):
        await self.sync(*VIEWED, kinds.SECRETS)
        self._task = asyncio.create_task(self.ingresses.run())
        await self.settle()

    async def end(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def decide(self, *arguments, **fields):
        (router,) = self.http.routers
        decision = router.decide(request(*arguments, **fields))
        return decision.backend[1] if isinstance(decision, Forward) else decision.status

    @property
    def address(self):
        status = self.informers.of(kinds.INGRESSES).lister.get("default", "shop").get("status") or {}
        return (status.get("loadBalancer") or {}).get("ingress")


@pytest.fixture
async def cluster():
    made = Cluster()
    await made.start()
    yield made
    await made.end()


@pytest.mark.parametrize(
    ("classes", "of_class", "served"),
    [
        ((), None, True),
        ((), "nginx", True),
        ((), "traefik", True),
        ((), "other", False),
        ((ingress_class("own"),), "own", True),
        ((ingress_class("own"),), None, False),
        ((ingress_class("own"), ingress_class("d", default=True)), None, True),
        ((ingress_class("d", "example.org/x", default=True),), None, False),
        ((ingress_class("nginx", "example.org/x"),), "nginx", False),
        ((ingress_class("traefik", TRAEFIK),), "traefik", True),
    ],
)
async def test_ingress_is_served_if_its_class_has_a_controller_here(cluster, classes, of_class, served):
    cluster.put(kinds.INGRESS_CLASSES, *classes)
    cluster.put(kinds.INGRESSES, shop(of_class=of_class))
    await cluster.settle()
    assert cluster.address == ([{"ip": ADDRESS}] if served else None)
    assert cluster.decide("/", "shop.example") == ("shop" if served else 404)
    assert cluster.http.users == ({"ingress"} if served else set())


async def test_ingress_follows_its_class_and_ends_with_it(cluster):
    cluster.put(kinds.INGRESSES, shop(of_class="own"))
    await cluster.settle()
    assert cluster.address is None
    cluster.put(kinds.INGRESS_CLASSES, ingress_class("own"))
    await cluster.settle()
    assert (cluster.address, cluster.decide("/", "shop.example")) == ([{"ip": ADDRESS}], "shop")
    cluster.put(kinds.INGRESS_CLASSES, ingress_class("own", "example.org/x"))
    await cluster.settle()
    assert (cluster.address, cluster.decide("/", "shop.example"), cluster.http.users) == (None, 404, set())


async def test_ports_are_open_until_the_last_ingress_is_removed(cluster):
    cluster.put(kinds.INGRESSES, shop(), shop("other", host="b.example"))
    await cluster.settle()
    cluster.remove(kinds.INGRESSES, shop("other"))
    await cluster.settle()
    assert cluster.http.users == {"ingress"}
    cluster.remove(kinds.INGRESSES, shop())
    await cluster.settle()
    assert (cluster.http.users, cluster.decide("/", "shop.example")) == (set(), 404)


@pytest.mark.parametrize(
    ("entry", "kept"),
    [({"ip": "127.9.9.9"}, False), ({"ip": "203.0.113.1"}, True), ({"hostname": "x"}, True)],
)
async def test_address_of_another_controller_is_kept(cluster, entry, kept):
    cluster.put(kinds.INGRESSES, shop(status={"loadBalancer": {"ingress": [entry]}}))
    await cluster.settle()
    assert cluster.address == ([entry] if kept else [{"ip": ADDRESS}])


async def test_events_say_once_what_is_wrong(cluster):
    cluster.http.problem = "port 80 is taken"
    tree = shop(auth_url="http://x")
    cluster.put(kinds.INGRESSES, tree)
    await cluster.settle()
    cluster.put(kinds.INGRESSES, tree)
    await cluster.settle()
    assert cluster.events.recorded == [
        ("shop", "Normal", "Sync", "Scheduled for sync"),
        ("shop", "Warning", "PublishedPortReplaced", "port 80 is taken"),
        (
            "shop",
            "Warning",
            "NotSimulated",
            "the annotation nginx.ingress.kubernetes.io/auth-url is not simulated",
        ),
    ]


async def test_later_ingress_with_the_same_path_is_told(cluster):
    cluster.put(kinds.INGRESSES, shop())
    later = shop("later")
    later["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    cluster.put(kinds.INGRESSES, later)
    await cluster.settle()
    text = 'host "shop.example" and path "/" is already defined in ingress default/shop, which is served'
    assert ("later", "Warning", "DuplicatePath", text) in cluster.events.recorded
    assert cluster.decide("/", "shop.example") == "shop"


def tls(*hosts, name="tls"):
    return {"secretName": name, "hosts": [*hosts]}


@pytest.mark.parametrize("hosts", [("shop.example",), ("SHOP.example",), ()])
async def test_certificate_of_a_host_follows_its_secret(cluster, pair, hosts):
    cluster.put(kinds.INGRESSES, shop(tls=[tls(*hosts), {"hosts": ["shop.example"]}]))
    await cluster.settle()
    assert cluster.http.choose("shop.example") is None
    cluster.put(kinds.SECRETS, secret(pair))
    await cluster.settle()
    assert cluster.http.choose("Shop.example") is not None
    assert cluster.http.choose("other.example") is None
    cluster.put(kinds.INGRESSES, shop())
    await cluster.settle()
    assert cluster.http.choose("shop.example") is None


async def test_certificate_for_another_host_is_told_if_the_host_is_listed(cluster, pair):
    cluster.put(kinds.SECRETS, secret(pair))
    cluster.put(kinds.INGRESSES, shop(tls=[tls("b.example")], host="b.example"))
    cluster.put(kinds.INGRESSES, shop("unlisted", tls=[tls()], host="c.example"))
    await cluster.settle()
    ((name, _, _, text),) = [each for each in cluster.events.recorded if each[2] == "BadCertificate"]
    assert name == "shop"
    assert 'secret "default/tls" has a certificate that is not for the host b.example' in text


async def test_certificate_of_a_wildcard_is_that_of_its_hosts(cluster, pair):
    cluster.put(kinds.SECRETS, secret(pair))
    cluster.put(kinds.INGRESSES, shop(tls=[tls("shop.example")]))
    await cluster.settle()
    assert cluster.http.choose("a.shop.example") is None


async def test_secret_is_forgotten_with_its_last_ingress(cluster, pair):
    cluster.put(kinds.SECRETS, secret(pair))
    cluster.put(kinds.INGRESSES, shop(tls=[tls("shop.example")]))
    await cluster.settle()
    assert [*cluster.ingresses._secrets] == [("default", "tls")]
    cluster.remove(kinds.INGRESSES, shop())
    await cluster.settle()
    assert (cluster.ingresses._secrets, cluster.ingresses._users) == ({}, {})
