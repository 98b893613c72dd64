"""compose.yaml: services have minimal rights, and the files and flags that it names exist."""

import re

import pytest
import yaml

from mockube.apiserver.config import command_line
from mockube.controller_manager import catalog
from mockube.controller_manager import command_line as manager
from tests.support.processes.compose_file import services
from tests.support.processes.process import ROOT

SERVICES = services()
LOCAL = "127.0.0.1:"


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_confined(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert not service.get("privileged")


def test_only_kubeconfig_service_has_a_capability():
    assert {name for name, service in SERVICES.items() if service.get("cap_add")} == {"kubeconfig"}


@pytest.mark.parametrize("name", SERVICES)
def test_images_have_versions(name):
    _, _, tag = SERVICES[name]["image"].rpartition(":")
    assert tag
    assert tag != "latest"


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "kubeconfig"])
def test_long_running_services_restart_and_have_health_checks(name):
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVICES)
def test_published_ports_are_local(name):
    assert all(port.startswith(LOCAL) for port in SERVICES[name].get("ports", ()))


def test_mounted_files_exist():
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    assert [path for path in mounted if path.startswith(".") and not (ROOT / path).exists()] == []


def test_store_network_is_limited_to_servers_and_prometheus():
    networks = yaml.safe_load((ROOT / "compose.yaml").read_text())["networks"]
    assert networks["store"] == {"internal": True}
    inside = {name for name, service in SERVICES.items() if "store" in service.get("networks", ())}
    assert inside == {"etcd", "apiserver", "prometheus"}


def test_programs_accept_their_flags():
    taken = command_line.parse(SERVICES["apiserver"]["command"][1:], {})
    assert taken.ignored == ()
    taken = manager.parse(SERVICES["controller-manager"]["command"][1:], {}, catalog.NAMES)
    assert taken.ignored == ()


def test_front_proxy_uses_names_of_server_services():
    text = (ROOT / "deploy" / "front" / "haproxy.cfg").read_text()
    assert re.search(r"server-template apiserver \d+ apiserver:6443 ", text)
    assert "bind :6443" in text
