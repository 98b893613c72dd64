"""The node port allocator, and which ports a Service allocates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.status import ApiError
from mockube.apiserver.allocation.node_ports import NodePorts, allocate_node_ports, allocated_node_ports
from tests.support.hostile.doubling import check_linear

PORTS = range(30000, 30100)
STATIC = 16
"""The size of the static band of a range of 100 ports; it is allocated last."""


def record(*used, ports=PORTS, draw=0.0):
    bits = sum(1 << ports.index(port) for port in used)
    return NodePorts(ports=ports, used=bits, revision=1, tree={}, draw=lambda: draw)


def test_port_is_allocated_once():
    ports = record(30001)
    assert ports.allocate(30001) == "provided port is already allocated"
    assert (ports.allocate(30002), ports.allocate(30002)) == ("", "provided port is already allocated")
    assert (
        ports.allocate(80)
        == "provided port is not in the valid range. The range of valid ports is 30000-30099"
    )
    assert ports.allocated == {30002}


@pytest.mark.parametrize(
    ("used", "draw", "expected"),
    [
        pytest.param((), 0.0, PORTS[STATIC], id="first of the dynamic band"),
        pytest.param((), 0.999, PORTS[-1], id="the last"),
        pytest.param(PORTS[STATIC:-1], 0.5, PORTS[-1], id="the only one"),
        pytest.param(PORTS[STATIC:], 0.0, PORTS[0], id="static band after the dynamic band"),
        pytest.param(PORTS, 0.0, 0, id="all ports in use"),
    ],
)
def test_allocate_next_returns_free_port(used, draw, expected):
    assert record(*used, draw=draw).allocate_next() == expected


def service(*ports, kind="NodePort", **spec):
    listed = [{"port": port, "protocol": protocol} | rest for port, protocol, rest in ports]
    return {"type": kind, "ports": listed, **spec}


HTTP, DNS, DNS_TCP = (80, "TCP", {}), (53, "UDP", {}), (53, "TCP", {})


def with_node_port(port, node_port):
    return (*port[:2], {"nodePort": node_port})


def allocate(spec, *used, before=(), is_new=True):
    ports = record(*used)
    wrong = allocate_node_ports(spec, ports, before, is_new=is_new)
    assert not wrong, wrong
    return [port.get("nodePort") for port in spec["ports"]], ports


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        pytest.param([HTTP, DNS], [30016, 30017], id="one for each port"),
        pytest.param([DNS, DNS_TCP], [30016, 30016], id="one for both protocols of a port"),
        pytest.param([DNS, with_node_port(DNS_TCP, 30050)], [30050, 30050], id="as chosen for one of them"),
        pytest.param(
            [with_node_port(DNS, 30040), with_node_port(DNS_TCP, 30050)],
            [30040, 30050],
            id="as chosen for both",
        ),
        pytest.param([with_node_port(HTTP, 30050)], [30050], id="as chosen"),
    ],
)
def test_new_service_gets_node_ports(ports, expected):
    assert allocate(service(*ports))[0] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(service(HTTP, kind="ClusterIP"), [None], id="not for cluster IPs"),
        pytest.param(service(HTTP, kind="LoadBalancer"), [30016], id="for load balancers"),
        pytest.param(
            service(
                HTTP, with_node_port(DNS, 30050), kind="LoadBalancer", allocateLoadBalancerNodePorts=False
            ),
            [None, 30050],
            id="without allocation, requested ports only",
        ),
    ],
)
def test_only_node_port_and_load_balancer_services_get_node_ports(spec, expected):
    assert allocate(spec)[0] == expected


def test_requested_node_port_in_use_is_refused_with_its_path():
    (wrong,) = allocate_node_ports(service(HTTP, with_node_port(DNS, 30050)), record(30050), (), is_new=True)
    assert str(wrong) == "spec.ports[1].nodePort: Invalid value: 30050: provided port is already allocated"


def test_update_allocates_only_new_node_ports():
    before = {30016}
    spec = service(with_node_port(HTTP, 30016), DNS)
    assert allocate(spec, *before, before=before, is_new=False)[0] == [30016, 30017]


def test_update_with_duplicate_node_port_is_refused():
    spec = service(with_node_port(HTTP, 30050), with_node_port((81, "TCP", {}), 30050))
    with pytest.raises(ApiError, match=r"duplicate nodePort: \{TCP 30050\}"):
        allocate_node_ports(spec, record(), (), is_new=False)


LOCAL = {"kind": "LoadBalancer", "externalTrafficPolicy": "Local"}


def test_load_balancer_with_local_traffic_gets_health_check_port():
    spec = service(HTTP, **LOCAL)
    allocate(spec)
    assert spec["healthCheckNodePort"] == 30017
    assert allocated_node_ports(spec) == {30016, 30017}


def test_requested_health_check_port_in_use_is_refused():
    spec = service(HTTP, **LOCAL, healthCheckNodePort=30050)
    with pytest.raises(ApiError, match="failed to allocate requested HealthCheck NodePort 30050"):
        allocate_node_ports(spec, record(30050), (), is_new=True)


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_exhausted_node_port_range_is_an_error(kind):
    with pytest.raises(ApiError, match="failed to allocate a nodePort: range is full"):
        allocate_node_ports(service(HTTP, kind=kind), record(*PORTS), (), is_new=True)


@given(
    used=st.sets(st.sampled_from(PORTS)),
    wishes=st.lists(st.sampled_from([*PORTS, 0])),
    draw=st.floats(0, 0.99),
)
def test_no_port_is_allocated_twice(used, wishes, draw):
    ports = record(*used, draw=draw)
    given_out = []
    for wish in wishes:
        if not wish:
            given_out += filter(None, [ports.allocate_next()])
        elif not ports.allocate(wish):
            given_out.append(wish)
    assert len({*given_out}) == len(given_out)
    assert not {*given_out} & used
    assert {*given_out} == ports.allocated


def large_service(count, *, protocols=("TCP",)):
    return service(*[(number, protocol, {}) for number in range(1, count + 1) for protocol in protocols])


@pytest.mark.timed
@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("protocols", [("TCP",), ("TCP", "UDP")])
def test_dry_run_of_many_ports_takes_linear_time(protocols, is_new):
    def allocate_dry_run(spec):
        ports = record()
        ports.dry_run = True
        assert not allocate_node_ports({**spec}, ports, (), is_new=is_new)  # which sets the ports

    check_linear(lambda size: large_service(size, protocols=protocols), allocate_dry_run, 4_000)


@pytest.mark.timed
def test_many_ports_of_a_large_range_take_linear_time():
    available = range(1024, 65536)
    check_linear(
        large_service,
        lambda spec: allocate_node_ports({**spec}, record(ports=available), (), is_new=True),
        4_000,
    )


def test_ports_of_one_write_are_distinct_and_free():
    ports = record(30020, 30021, draw=0.5)
    assert ports.allocate(30050) == ""
    drawn = [ports.allocate_next() for _ in range(len(PORTS) - 3)]
    assert {*drawn} == {*PORTS} - {30020, 30021, 30050}
    assert ports.allocate_next() == 0
