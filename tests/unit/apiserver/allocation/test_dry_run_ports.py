"""Node ports in a dry run: the server does not check the range, as upstream."""

from mockube.apiserver.allocation.node_ports import FIRST_DRY_RUN_PORT, NodePorts, allocate_node_ports


def record(*, dry_run):
    ports = NodePorts(ports=range(30000, 32768), used=1, revision=0, tree={}, draw=lambda: 0.0)
    ports.dry_run = dry_run
    return ports


def ports_or_error(*ports, dry_run=True):
    spec = {
        "type": "NodePort",
        "ports": [{"port": at + 1, "nodePort": port} for at, port in enumerate(ports)],
    }
    wrong = allocate_node_ports(spec, record(dry_run=dry_run), (), is_new=True)
    return [port["nodePort"] for port in spec["ports"]] if not wrong else wrong[0].detail


def test_out_of_range_ports_are_refused_only_when_stored():
    assert ports_or_error(70000, -1, 80) == [70000, -1, 80]
    assert "not in the valid range" in ports_or_error(70000, dry_run=False)


def test_allocated_port_is_refused_in_dry_run():
    assert ports_or_error(30000) == ports_or_error(70000, 70000) == ports_or_error(30000, dry_run=False)


def test_dry_run_uses_placeholder_ports():
    assert ports_or_error(0, 0) == [FIRST_DRY_RUN_PORT, FIRST_DRY_RUN_PORT + 1]


def test_placeholder_ports_follow_requested_ports():
    assert ports_or_error(70000, 0) == [70000, 70001]
    assert ports_or_error(-1, 0) == [-1, 1]
