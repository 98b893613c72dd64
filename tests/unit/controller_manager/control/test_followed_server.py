"""A manager without flags of its own has the minor and the packs of its server, and follows their changes."""

import asyncio

import pytest

from mockube.apimachinery.status import Forbidden
from mockube.client.cache.informer import Informer
from mockube.client.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from mockube.client.wire import NoResponse
from mockube.controller_manager.config.features import Features
from mockube.controller_manager.config.settings import Config, Controllers
from mockube.controller_manager.control.followed_server import (
    ServerObserver,
    ServerState,
    config_for,
    minor_of,
    read_server,
    report,
)
from tests.support.event_loop import until, yield_to_loop

V1_36 = ServerState(version="v1.36.3", minor="1.36", packs=("kruise",))


def definition(name, pack="", version=1):
    labels = {"mockube.dev/pack": pack} if pack else {}
    return {"metadata": {"name": name, "uid": name, "labels": labels, "resourceVersion": str(version)}}


class Server:
    """A client of a server with a version and definitions; `error` is what its requests raise."""

    def __init__(self, minor="36", definitions=()):
        self.version = {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.3"}
        self.definitions = definitions
        self.errors = {}
        self.paths = []

    async def raw(self, _, path, *, accept="application/json"):
        assert ("PartialObjectMetadataList" in accept) == (path == LIST)
        self.paths.append(path)
        await yield_to_loop()
        if path in self.errors:
            raise self.errors[path]
        return self.version if path == "/version" else {"items": [*self.definitions]}


LIST = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?labelSelector=mockube.dev/pack"


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ({"major": "1", "minor": "36", "gitVersion": "v1.36.3"}, "1.36"),
        ({"major": "1", "minor": "33+", "gitVersion": "v1.33.1-gke.100"}, "1.33"),
        ({"major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "36"}, "1.36"),
        ({"gitVersion": "v1.34.1+k3s1"}, "1.34"),
        ({"minor": "", "gitVersion": "v1.34.1"}, "1.34"),
        ({"major": "1", "minor": "38"}, "1.37"),
        ({"major": "1", "minor": "22"}, "1.29"),
        ({}, "1.37"),
    ],
)
def test_minor_is_the_nearest_one_that_the_controllers_have(version, minor):
    assert minor_of(version) == minor


async def test_packs_are_read_only_if_they_are_needed():
    server = Server(definitions=[definition("a", "kruise"), definition("b", "kruise")])
    assert await read_server(server, with_packs=True) == V1_36
    assert server.paths == ["/version", LIST]
    assert await read_server(server, with_packs=False) == ServerState(version="v1.36.3", minor="1.36")
    assert server.paths == ["/version", LIST, "/version"]


async def test_packs_that_may_not_be_listed_are_reported(caplog):
    server = Server()
    server.errors[LIST] = Forbidden("definitions are forbidden")
    assert (await read_server(server, with_packs=True)).packs == ()
    assert "definitions are forbidden" in caplog.text


def test_settings_without_flags_are_those_of_the_server():
    config = config_for(Config(), V1_36)
    assert (config.features.minor, config.controllers.packs) == ("1.36", ("kruise",))
    assert config.features.gates.minor == "1.36"


def test_flags_take_precedence_over_the_server():
    flags = Config(features=Features(kubernetes_version="1.37"), controllers=Controllers(packs=()))
    assert config_for(flags, V1_36) == flags


def test_pack_that_is_not_installed_is_reported(caplog):
    server = ServerState(version="v1.36.3", minor="1.36", packs=("kruise", "website"))
    assert config_for(Config(), server).controllers.packs == ("kruise",)
    assert 'has the pack "website", which is not installed here' in caplog.text


def test_minor_of_a_flag_that_differs_is_reported(caplog):
    report(Config(features=Features(kubernetes_version="1.37")), V1_36)
    assert (
        "Kubernetes 1.37, as --kubernetes-version says; the version of the API server is v1.36.3"
        in caplog.text
    )
    caplog.clear()
    report(Config(features=Features(kubernetes_version="1.36")), V1_36)
    assert caplog.text == ""


class Observed:
    def __init__(self, server, flags, clock):
        self.server = server
        self.restarts = 0
        self.namespaces = Informer(NAMESPACES, clock=clock)
        self.definitions = Informer(CUSTOM_RESOURCE_DEFINITIONS, clock=clock)
        self.observer = ServerObserver(server, flags, V1_36, self._restart)
        self.observer.observe(self.namespaces, self.definitions)

    def _restart(self):
        self.restarts += 1


@pytest.fixture
async def observe(clock):
    """Return a function that observes a server, for given flags."""
    tasks = []

    def observe(server, flags=Config()):  # noqa: B008 - it is immutable
        observed = Observed(server, flags, clock)
        tasks.append(asyncio.create_task(observed.observer.run()))
        return observed

    yield observe
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def reconnect(observed):
    """Begin a watch, and wait until the version has been read."""
    before = len(observed.server.paths)
    observed.namespaces.note_watch()
    await until(lambda: len(observed.server.paths) > before)
    for _ in range(5):
        await yield_to_loop()


async def test_server_of_another_minor_restarts_all_work(observe):
    observed = observe(Server())
    await reconnect(observed)
    assert observed.restarts == 0
    observed.server.version = Server("37").version
    await reconnect(observed)
    assert (observed.restarts, observed.observer.known.minor) == (1, "1.37")
    assert observed.observer.known.packs == ("kruise",)


async def test_failed_request_is_repeated_with_the_next_watch(observe):
    observed = observe(Server("37"))
    observed.server.errors["/version"] = NoResponse("no server")
    await reconnect(observed)
    assert observed.restarts == 0
    observed.server.errors.clear()
    await reconnect(observed)
    assert observed.restarts == 1


async def test_minor_of_a_flag_stays_and_the_difference_is_reported(observe, caplog):
    observed = observe(Server("37"), Config(features=Features(kubernetes_version="1.36")))
    await reconnect(observed)
    assert observed.restarts == 0
    assert "the version of the API server is v1.37.3" in caplog.text


async def test_new_pack_of_the_server_restarts_all_work_once(observe):
    observed = observe(Server())
    await observed.definitions.replace([definition("old", "kruise"), definition("foreign")], 1)
    assert observed.restarts == 0
    observed.definitions.put(definition("a", "website", 2))
    observed.definitions.put(definition("b", "website", 3))
    assert (observed.restarts, observed.observer.known.packs) == (1, ("kruise", "website"))


async def test_pack_that_the_flag_omits_is_reported_once(observe, caplog):
    observed = observe(Server(), Config(controllers=Controllers(packs=())))
    await observed.definitions.replace([definition("a", "kruise"), definition("b", "kruise")], 1)
    observed.definitions.remove(definition("a", "kruise", 2))
    assert observed.restarts == 0
    assert caplog.text.count('has the pack "kruise", whose controllers do not run') == 1
