"""Which Ingresses are served, by which certificates, and what their status and Events say."""

import asyncio

import pytest

from mockube.client import kinds
from mockube.network.ingress import NGINX, TRAEFIK
from mockube.publisher import ingresses
from mockube.publisher.certificates import certificate_of
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


async def test_ingress_of_another_controller_keeps_its_status(cluster):
    own = {"loadBalancer": {"ingress": [{"ip": "127.9.9.9"}]}}
    cluster.put(kinds.INGRESSES, shop(of_class="other", status=own))
    await cluster.settle()
    assert cluster.address == [{"ip": "127.9.9.9"}]
    assert (cluster.events.recorded, cluster.client.writes) == ([], [])


async def test_status_is_written_once(cluster):
    cluster.put(kinds.INGRESSES, shop())
    await cluster.settle()
    cluster.put(kinds.INGRESSES, shop(status={"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}))
    await cluster.settle()
    assert cluster.client.writes == [("patch", "ingresses/status", "shop")]


async def test_traefik_reports_neither_its_start_nor_annotations(cluster):
    cluster.put(kinds.INGRESSES, shop(of_class="traefik", auth_url="x"))
    await cluster.settle()
    assert cluster.events.recorded == []


async def test_problem_that_comes_back_is_told_again(cluster):
    for problem in ("first", "second", "", "first"):
        cluster.http.problem = problem
        cluster.put(kinds.INGRESSES, shop())
        await cluster.settle()
    texts = [text for _, _, reason, text in cluster.events.recorded if reason == "PublishedPortReplaced"]
    assert texts == ["first", "second", "first"]


async def test_ingress_that_an_older_one_replaces_is_told_when_that_comes(cluster):
    later = shop("later")
    later["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    cluster.put(kinds.INGRESSES, later)
    await cluster.settle()
    cluster.put(kinds.INGRESSES, shop())
    await cluster.settle()
    duplicates = [name for name, _, reason, _ in cluster.events.recorded if reason == "DuplicatePath"]
    assert duplicates == ["later"]
    syncs = []
    sync = cluster.ingresses._loop.add
    cluster.ingresses._loop.add = lambda key: syncs.append(key.name) or sync(key)
    cluster.put(kinds.INGRESSES, shop())
    await cluster.settle()
    assert {*syncs} == {"shop"}, "the later one is told already"


async def test_controller_of_an_ingress_changes_with_its_class(cluster):
    cluster.put(kinds.INGRESSES, shop(of_class="nginx"))
    await cluster.settle()
    cluster.put(kinds.INGRESSES, shop(of_class="traefik"))
    await cluster.settle()
    assert [len(cluster.ingresses._tables[name]) for name in (NGINX, TRAEFIK)] == [0, 1]
    assert cluster.address == [{"ip": ADDRESS}]


async def test_certificate_is_read_again_only_in_another_version(cluster, pair, monkeypatch):
    made = []
    monkeypatch.setattr(
        ingresses, "certificate_of", lambda found: made.append(found) or certificate_of(found)
    )
    cluster.put(kinds.SECRETS, secret(pair))
    for name in ("shop", "other"):
        cluster.put(kinds.INGRESSES, shop(name, tls=[tls("shop.example")]))
    await cluster.settle()
    assert len(made) == 1
    cluster.put(kinds.SECRETS, secret(pair))
    await cluster.settle()
    assert len(made) == 2


async def test_secrets_are_watched_from_the_first_ingress_with_tls(cluster, pair):
    cluster.put(kinds.INGRESSES, shop())
    await cluster.settle()
    assert not cluster.ingresses._watches_secrets
    cluster.put(kinds.INGRESSES, shop(tls=[tls("shop.example")]), shop("two", tls=[tls("b.example")]))
    cluster.put(kinds.SECRETS, secret(pair))
    await cluster.settle()
    assert {*cluster.ingresses._users} == {("default", "tls")}
    assert cluster.ingresses._users["default", "tls"] == {("default", "shop"), ("default", "two")}
    cluster.put(kinds.INGRESSES, shop("two"))
    await cluster.settle()
    assert cluster.ingresses._users["default", "tls"] == {("default", "shop")}


async def test_secret_in_no_use_reaches_no_ingress(cluster, pair):
    cluster.put(kinds.INGRESSES, shop(tls=[tls("shop.example")]))
    await cluster.settle()
    added = []
    cluster.ingresses._loop.add = added.append
    cluster.put(kinds.SECRETS, secret(pair, "other"), secret(pair))
    assert added == [("default", "shop")]


async def test_removed_ingress_has_no_certificate(cluster, pair):
    cluster.put(kinds.SECRETS, secret(pair))
    cluster.put(kinds.INGRESSES, shop(tls=[tls("shop.example")]), shop("other", host="shop.example"))
    await cluster.settle()
    cluster.remove(kinds.INGRESSES, shop())
    await cluster.settle()
    assert (cluster.http.choose("shop.example"), [*cluster.ingresses._certificates]) == (
        None,
        [("default", "other")],
    )


async def test_certificate_of_a_wildcard_host_is_that_of_its_subdomains(cluster, pair):
    cluster.put(kinds.SECRETS, secret(pair))
    cluster.put(kinds.INGRESSES, shop(tls=[tls()], host="shop.example"))
    wild = shop("wild", host="*.example")
    cluster.put(kinds.INGRESSES, wild)
    await cluster.settle()
    context = cluster.http.choose("shop.example")
    cluster.ingresses._certificates["default", "wild"] = {
        "*.example": cluster.ingresses._certificates["default", "shop"]["shop.example"]
    }
    assert context is not None
    assert cluster.http.choose("a.example") is context
    assert cluster.http.choose("a.b.example") is None


async def test_redirect_to_tls_has_the_port_of_this_machine(cluster):
    cluster.put(kinds.INGRESSES, shop(force_ssl_redirect="true"))
    await cluster.settle()
    (router,) = cluster.http.routers
    location = dict(router.decide(request("/", "shop.example")).headers)["Location"]
    assert location == "https://shop.example:8443/"
    cluster.http.endpoint = lambda **_: None
    location = dict(router.decide(request("/", "shop.example")).headers)["Location"]
    assert location == "https://shop.example/"


async def test_pod_of_a_controller_serves_its_ingresses_alone(cluster):
    served = []

    async def serve(router, *arguments, **options):
        served.append((router, arguments, options))

    cluster.http.serve = serve
    cluster.put(kinds.INGRESSES, shop())
    await cluster.settle()
    for controller, status in ((NGINX, "shop"), (TRAEFIK, 404), ("example.org/x", 404)):
        await cluster.ingresses.serve_pod("connection", controller, "peer", 443, uses_tls=True)
        router, arguments, options = served.pop()
        decision = router.decide(request("/", "shop.example"))
        assert (decision.backend[1] if isinstance(decision, Forward) else decision.status) == status
        assert (arguments, options) == (("connection", "peer", 443), {"uses_tls": True})
