"""The server of the simulated kubelets: it listens, and a ConfigMap has its address and its certificate."""

import socket
import ssl
from types import SimpleNamespace

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.component_base.clock import SteppedClock
from mockube.component_base.local_ports import KUBELETS
from mockube.component_base.serving_certificates import self_signed_certificate
from mockube.controller_manager.components import SIMULATED_KUBELETS
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.kubelet.kubelets import SimulatedKubelets
from tests.support.controllers.running_manager import running_cluster
from tests.support.controllers.simulated import MERGE

MAPS = "/api/v1/namespaces/kube-system/configmaps"
PATH = f"{MAPS}/mockube-kubelets"
WRITES = ("mockube-kubelets", "kube-system/configmaps")


def cluster(**simulation):
    config = Config(simulation=Simulation(**simulation))
    return running_cluster(runnables=(SIMULATED_KUBELETS,), config=config, namespaces=["kube-system"])


async def test_address_and_certificate_are_published_and_restored():
    async with cluster() as (server, manager):
        await manager.settle()
        data = (await server.get(PATH)).body["data"]
        host, _, port = data["address"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5):
            pass
        assert ssl.PEM_cert_to_DER_cert(data["certificate"])
        writes = manager.transport.writes
        assert [method for method, target in writes if target.split("?")[0].endswith(WRITES)] == [
            "PATCH",
            "POST",
        ]
        await server.patch(PATH, {"metadata": {"labels": {"a": "b"}}}, **MERGE)
        await server.post(MAPS, {"metadata": {"name": "other"}})
        await manager.settle()
        count = len(manager.transport.writes)
        await server.patch(PATH, {"data": {"address": "10.0.0.1:1"}}, **MERGE)
        await manager.settle()
        assert (await server.get(PATH)).body["data"] == data
        await server.delete(PATH)
        await manager.settle()
        assert (await server.get(PATH)).body["data"] == data
        methods = [method for method, target in manager.transport.writes[count:] if "configmaps" in target]
        assert methods == ["PATCH", "PATCH", "POST"]


@pytest.mark.parametrize(
    ("address", "local_ports", "expected"),
    [
        ("127.0.0.1", None, "127.0.0.1:1"),
        ("0.0.0.0", None, f"{socket.gethostname()}:1"),
        ("::1", None, "[::1]:1"),
        ("127.0.0.1", {}, KUBELETS),
    ],
)
def test_address_that_others_use(address, local_ports, expected):
    settings = SimpleNamespace(address=address, local_ports=local_ports)
    kubelets = SimpleNamespace(_settings=settings, _port=lambda: 1)
    assert SimulatedKubelets._advertised_address(kubelets) == expected
    if local_ports is not None:
        assert local_ports[KUBELETS] == "127.0.0.1:1"


async def test_authority_of_clients_is_read_at_the_start():
    authority, _ = self_signed_certificate("127.0.0.1", now=SteppedClock().now(), random=SeededRandom())
    key = ("kube-system", "extension-apiserver-authentication")
    for data, mode in (
        ({"client-ca-file": authority.decode()}, ssl.CERT_OPTIONAL),
        ({}, ssl.CERT_NONE),
        (None, ssl.CERT_NONE),
    ):
        found = {key: {"metadata": {}, "data": data}}
        kubelets = SimpleNamespace(
            _context=SimpleNamespace(clock=SteppedClock(), random=SeededRandom()),
            _settings=SimpleNamespace(address="127.0.0.1"),
            _config_maps=SimpleNamespace(
                lister=SimpleNamespace(get=lambda *key, found=found: found.get(key))
            ),
        )
        tls, certificate = SimulatedKubelets._credentials(kubelets)
        assert (tls.verify_mode, tls.cert_store_stats()["x509"]) == (mode, int(mode is ssl.CERT_OPTIONAL))
        assert certificate.startswith("-----BEGIN CERTIFICATE-----")
