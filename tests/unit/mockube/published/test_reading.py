"""What is read of a cluster that publishes Services."""

import pytest

from mockube.apimachinery.status import NotFound
from mockube.client.kinds import ENDPOINT_SLICES, SERVICES
from mockube.client.verbs import ObjectList
from mockube.published.addresses import Published
from mockube.published.reading import read_all


def service(name, port):
    ports = [{"port": 80, "nodePort": port, "protocol": "TCP"}]
    spec = {"type": "NodePort", "ports": ports, "selector": {"app": name}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def endpoint_slice(name, *, is_ready):
    labels = {"kubernetes.io/service-name": name}
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": is_ready}}]
    return {
        "metadata": {"name": f"{name}-1", "namespace": "default", "labels": labels},
        "endpoints": endpoints,
    }


class Objects:
    """A client of a server with Services and EndpointSlices."""

    def __init__(self, *slices):
        self._slices = list(slices)

    async def list(self, resource, _namespace=""):
        services = [service("none", 30001), service("unready", 30002), service("web", 30003)]
        found = {SERVICES: services, ENDPOINT_SLICES: self._slices}.get(resource)
        if found is None:
            raise NotFound("")
        return ObjectList(found, "1", "")


@pytest.fixture
def published():
    record = {f"default.{name}.80": "127.0.0.1:3000" for name in ("none", "unready", "web")}
    return Published(record={"address": "127.0.0.1", **record})


async def test_service_without_a_ready_endpoint_has_a_note(published):
    client = Objects(endpoint_slice("unready", is_ready=False), endpoint_slice("web", is_ready=True))
    notes = {url.object_name: url.note for url in await read_all(client, published, "")}
    assert notes == {
        "none": "no ready endpoints: no running pod matches its selector app=none",
        "unready": "no ready endpoints: none of its pods is ready (kubectl get pods -l app=unready)",
        "web": "",
    }
