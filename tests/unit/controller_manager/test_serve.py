"""The ports of a manager, and the file in which it writes their URLs."""

import asyncio
import os
import signal
import ssl

import pytest

from mockube.apimachinery.randomness import SeededRandom, SystemRandom
from mockube.client.connection_options import ClientConnectionOptions
from mockube.client.kubeconfig import KubeconfigError
from mockube.component_base.clock import SteppedClock
from mockube.component_base.component_urls import read_component_urls
from mockube.component_base.serving_certificates import self_signed_certificate
from mockube.controller_manager import app, serve
from mockube.controller_manager.config.settings import Config, SecureServing, Simulation
from mockube.controller_manager.control.followed_server import UnusableFlags
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop


def ports_of(**settings):
    ports = serve._ports(SecureServing(**settings), SteppedClock(), SystemRandom())
    return [(port.address, port.number, port.tls is not None) for port in ports]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"secure_port": 0}, []),
        ({"secure_port": 10257}, [("127.0.0.1", 10257, True)]),
        ({"secure_port": 0, "metrics_port": 0}, [("127.0.0.1", 0, False)]),
        ({"secure_port": 1, "metrics_port": 2}, [("127.0.0.1", 1, True), ("127.0.0.1", 2, False)]),
        ({"secure_port": 0, "metrics_port": 2, "bind_address": "::1"}, [("::1", 2, False)]),
        ({"secure_port": 0, "metrics_port": 2, "bind_address": "192.0.2.1"}, [("127.0.0.1", 2, False)]),
    ],
)
def test_plain_metrics_are_served_on_loopback_only(settings, expected):
    assert ports_of(**settings) == expected


def test_certificate_files_are_served_and_an_authority_requests_client_certificates(tmp_path):
    certificate, key = self_signed_certificate("127.0.0.1", now=SteppedClock().now(), random=SystemRandom())
    (tmp_path / "tls.crt").write_bytes(certificate)
    (tmp_path / "tls.key").write_bytes(key)
    files = {"tls_cert_file": tmp_path / "tls.crt", "tls_private_key_file": tmp_path / "tls.key"}
    (tmp_path / "other.key").write_bytes(b"no key")
    for settings, mode in (
        ({}, ssl.CERT_NONE),
        ({"client_ca_file": tmp_path / "tls.crt"}, ssl.CERT_OPTIONAL),
    ):
        (port,) = serve._ports(SecureServing(**files, **settings), SteppedClock(), SystemRandom())
        assert port.tls.verify_mode is mode
    with pytest.raises(ssl.SSLError):
        ports_of(**files | {"tls_private_key_file": tmp_path / "other.key"})


@pytest.mark.parametrize("count", [0, 1])
async def test_urls_of_components_are_written_to_file(tmp_path, count):
    path = tmp_path / "urls.json"
    serving = SecureServing(secure_port=0, metrics_port=0, write_component_urls=path)
    config = Config(serving=serving, simulation=Simulation(simulate_nodes=plain_nodes(count)))
    manager = app.Manager(config, clock=SteppedClock(), random=SeededRandom())
    async with serve.serving_status(manager, config, SteppedClock(), SeededRandom()):
        urls = read_component_urls(path)
    health = urls["controller-manager"]
    assert health.startswith("http://127.0.0.1:")
    assert health.endswith("/healthz")
    assert urls.get("scheduler") == (health if count else None)
    assert urls["controllers-page"] == health.replace("/healthz", "/debug/controllers")
    assert len(urls["controllers-token"]) == 64


@pytest.mark.parametrize(
    "settings",
    [{"secure_port": 0}, {"secure_port": 0, "metrics_port": 0, "write_component_urls": None}],
    ids=["no port", "no file"],
)
async def test_no_urls_are_written_without_port_or_file(tmp_path, settings):
    config = Config(serving=SecureServing(**{"write_component_urls": tmp_path / "urls.json", **settings}))
    manager = app.Manager(config, clock=SteppedClock(), random=SeededRandom())
    async with serve.serving_status(manager, config, SteppedClock(), SeededRandom()):
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (OSError("in use"), OSError, "in use"),
        (KubeconfigError("no server"), KubeconfigError, "no server"),
        (ExceptionGroup("", [UnusableFlags("never")]), UnusableFlags, "never"),
        (ExceptionGroup("", [KeyError("x")]), serve.ManagerFailed, "the manager failed: KeyError: 'x'"),
    ],
)
async def test_error_of_a_manager_is_reported_by_its_cause(error, kind, message):
    async def fail():
        raise error

    with pytest.raises(kind) as raised:
        await serve._await_task(asyncio.create_task(fail()))
    assert str(raised.value) == message


async def test_signal_stops_a_manager(caplog):
    caplog.set_level("INFO")
    server = ClientConnectionOptions(master="http://127.0.0.1:1")
    config = Config(server=server, serving=SecureServing(secure_port=0))
    serving = asyncio.create_task(serve.serve(config))
    await yield_to_loop()
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(WAIT_TIMEOUT):
        await serving
    assert caplog.messages[-2:] == [
        "Stopping: waiting for reconciliations in progress; a second signal cancels them",
        "Stopped",
    ]


async def test_failed_manager_ends_the_process(tmp_path):
    server = ClientConnectionOptions(kubeconfig=tmp_path / "none")
    with pytest.raises(KubeconfigError):
        await serve.serve(Config(server=server, serving=SecureServing(secure_port=0)))
