"""Flags match kube-controller-manager's, and invalid flags have clear error messages."""

from pathlib import Path

import pytest

from mockube.client.flowcontrol import Rate
from mockube.client.kubeconfig import Access, access_of, rate_of
from mockube.component_base.flags import flags_of
from mockube.controller_manager.catalog import WORKERS
from mockube.controller_manager.command_line import parse
from mockube.controller_manager.config.configz import configz
from mockube.controller_manager.config.settings import Controllers
from mockube.controller_manager.config.upstream import IGNORED
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.architecture.source import paths
from tools.packages import ROOT

KNOWN = {"deployment-controller", "kube-scheduler"}
MASTER = "--master=http://127.0.0.1:8080"


def read(*arguments, **environment):
    return parse([MASTER, *arguments], environment, KNOWN)


def test_version_is_printed_without_server(capsys):
    with pytest.raises(SystemExit) as ended:
        parse(["--version"], {}, KNOWN)
    assert (ended.value.code, capsys.readouterr().out) == (0, "Kubernetes v1.37.2\n")


def test_defaults_are_upstreams():
    config = read()
    assert config.controllers.controllers == ("*",)
    assert config.controllers.concurrent_deployment_syncs == 5
    assert (config.leading.leader_elect, config.leading.leader_elect_lease_duration) == (True, 15.0)
    assert (config.serving.bind_address, config.serving.secure_port) == ("127.0.0.1", 10257)
    assert config.simulation.simulate_nodes == plain_nodes(0)
    assert config.ignored == ()


@pytest.mark.parametrize(
    ("arguments", "section", "field", "value"),
    [
        pytest.param(["--concurrent-gc-syncs=3"], "controllers", "concurrent_gc_syncs", 3, id="syncs"),
        pytest.param(["--controllers=*,-x-y"], "controllers", "controllers", ("*", "-x-y"), id="controllers"),
        pytest.param(["--leader-elect=false"], "leading", "leader_elect", False, id="alone"),
        pytest.param(["--simulate-nodes", "5"], "simulation", "simulate_nodes", plain_nodes(5), id="nodes"),
        pytest.param(["--root-ca-file=a"], "controllers", "root_ca_file", Path("a"), id="a file"),
        pytest.param(
            ["--cluster-signing-duration=24h"],
            "signing",
            "cluster_signing_duration",
            86400.0,
            id="a duration",
        ),
        pytest.param(["--kube-api-qps=7.5"], "server", "kube_api_qps", 7.5, id="a rate"),
        pytest.param(["--version=v1.37.2-a"], "features", "version", "v1.37.2-a", id="a version"),
        pytest.param(["--node-eviction-rate=0.5"], "controllers", "node_eviction_rate", 0.5, id="a fraction"),
    ],
)
def test_flag_sets_its_field(arguments, section, field, value):
    config = parse([MASTER, *arguments], {}, {*KNOWN, "x-y"})
    assert getattr(getattr(config, section), field) == value


def test_kubeconfig_variable_is_the_default():
    assert parse([], {"KUBECONFIG": "a"}, KNOWN).server.kubeconfig == Path("a")
    assert parse(["--kubeconfig=b"], {"KUBECONFIG": "a"}, KNOWN).server.kubeconfig == Path("b")
    assert read(KUBECONFIG="a").server.kubeconfig is None


def test_unsupported_upstream_flags_are_recorded_as_ignored():
    assert read("--configure-cloud-routes", "--cluster-name=x").ignored == (
        "cluster-name",
        "configure-cloud-routes",
    )


def test_flags_and_controllers_that_older_minor_has_are_accepted():
    config = read("--kubernetes-version=1.36", "--concurrent-service-syncs=1", "--controllers=*,-route")
    assert config.ignored == ("concurrent-service-syncs",)


def test_no_flag_is_both_supported_and_ignored():
    config = read()
    here = {
        name.replace("_", "-")
        for section in (config.server, config.controllers, config.leading, config.serving, config.logging)
        for name in flags_of(type(section))
    }
    assert here & {*IGNORED} == set()


def test_every_flag_has_an_effect():
    """Some module outside the settings contains the name of each field."""
    settings = ("controller_manager/config/settings.py", "client/connection_options.py")
    folders = ("controller_manager", "client")
    readers = [
        (ROOT / path).read_text() for folder in folders for path in paths(folder) if path not in settings
    ]
    config = read()
    sections = (config.server, config.controllers, config.leading, config.serving, config.simulation)
    fields = [name for section in sections for name in flags_of(type(section))]
    assert [name for name in fields if not any(name in text for text in readers)] == []


def test_every_controller_has_a_concurrency_flag():
    assert {*WORKERS.values()} <= {*flags_of(Controllers)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--bogus"], "unrecognized arguments: --bogus", id="unknown"),
        pytest.param(
            ["--concurrent-service-syncs=1", "--kubernetes-version=1.37"],
            "unrecognized arguments: --concurrent-service-syncs",
            id="removed in 1.37",
        ),
        pytest.param(
            ["--controllers=*,-route", "--kubernetes-version=1.37"],
            '"node-route-controller" is not in the list',
            id="no such name",
        ),
        pytest.param(
            ["--controllers=*,-zzzz"],
            '"zzzz" is not in the list of known controllers, which --help lists',
            id="no similar name",
        ),
        pytest.param(["--kube-api-qps=0"], "not a number above 0", id="no rate"),
        pytest.param(["--kube-api-qps=fast"], "not a number above 0", id="no number"),
        pytest.param(["--concurrent-gc-syncs=0"], "at least 1 is needed", id="no workers"),
        pytest.param(
            ["--controllers=*,selinux-warning-controller"],
            '"selinux-warning-controller" is not implemented by mockube; remove it',
            id="missing element",
        ),
        pytest.param(
            ["--legacy-service-account-token-clean-up-period=0s"],
            "0s is too short: use more than 0s",
            id="zero duration",
        ),
        pytest.param(
            ["--controllers=*,-deploymentt"],
            '"deploymentt" is not in the list of known controllers: did you mean "deployment-controller"?',
            id="mistyped controller",
        ),
        pytest.param(["--bind-address=0.0.0.0"], "loopback require --client-ca-file", id="public address"),
        pytest.param(["--tls-cert-file=x"], "must be set together", id="half a pair"),
        pytest.param(
            ["--simulate-nodes=15001"], "at most 15000 nodes can have addresses", id="too many nodes"
        ),
        pytest.param(
            ["--simulate-nodes=5000", "--node-cidr-mask-size=21"],
            "at most 4096 nodes can have addresses; with a larger --cluster-cidr",
            id="too many nodes for pod CIDRs",
        ),
        pytest.param(
            ["--cluster-signing-legacy-unknown-key-file=k"],
            "cannot specify key without cert",
            id="half a signer",
        ),
        pytest.param(
            [
                "--cluster-signing-cert-file=c",
                "--cluster-signing-kubelet-serving-cert-file=c",
                "--cluster-signing-kubelet-serving-key-file=k",
            ],
            "cannot specify --cluster-signing-{cert,key}-file and other",
            id="two ways to sign",
        ),
        pytest.param(["--stages=none.yaml"], "none.yaml: No such file", id="no stages"),
        pytest.param(
            ["--simulate-nodes=memroy=4Gi:3"],
            '--simulate-nodes/--nodes: unknown key "memroy": did you mean "memory"?',
            id="unknown key of a pool",
        ),
        pytest.param(
            ["--feature-gates=NoSuchGate=true"], "unrecognized feature gate: NoSuchGate", id="a gate"
        ),
        pytest.param(["--scheduler-config=none.yaml"], "--scheduler-config: ", id="no configuration"),
        pytest.param(["--allocate-node-cidrs=true"], "needs --cluster-cidr", id="no range of pods"),
        pytest.param(
            ["--container-runtime=process", "--images=none.yaml"], "--images: none.yaml: ", id="no images"
        ),
        pytest.param(["--version=1.2"], "--version", id="no version"),
        pytest.param(["--leader-elect-lease-duration=10s"], "must be longer than", id="too short a lease"),
        pytest.param(["--leader-elect-retry-period=9s"], "must be longer than 1.2 times", id="too few tries"),
    ],
)
def test_invalid_flags_are_refused(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        read(*arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_missing_server_address_is_refused(capsys):
    with pytest.raises(SystemExit):
        parse([], {}, KNOWN)
    assert "set --kubeconfig or --master" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("server", "flags", "expected"),
    [
        pytest.param("https://127.0.0.1:6443", [], None, id="here"),
        pytest.param("https://[::1]:6443", [], None, id="here, IPv6"),
        pytest.param("http://localhost", [], None, id="here, by name"),
        pytest.param("https://10.0.0.1", [], Rate(qps=20.0, burst=30), id="other address"),
        pytest.param("https://example.com", [], Rate(qps=20.0, burst=30), id="other address by name"),
        pytest.param("https://127.0.0.1", ["--kube-api-qps=5"], Rate(qps=5.0, burst=30), id="explicit value"),
        pytest.param("https://10.0.0.1", ["--kube-api-burst=5"], Rate(qps=20.0, burst=5), id="a burst alone"),
    ],
)
def test_only_remote_server_is_rate_limited(server, flags, expected):
    assert rate_of(read(*flags).server, Access(server=server)) == expected


def test_master_flag_names_server_without_kubeconfig():
    assert access_of(read().server) == Access(server="http://127.0.0.1:8080")


def test_configz_has_upstreams_names():
    (shown,) = configz(read("--root-ca-file=a")).values()
    assert shown["controllers"]["concurrentDeploymentSyncs"] == 5
    assert shown["controllers"]["rootCaFile"] == "a"
    assert shown["controllers"]["controllers"] == ["*"]


@pytest.mark.parametrize("flag", ["--images", "--simulated-images"])
def test_invalid_file_of_images_is_named(tmp_path, capsys, flag):
    path = tmp_path / "images.yaml"
    path.write_text("shop: {names: [shop], port: 80}")
    with pytest.raises(SystemExit):
        read(f"{flag}={path}")
    assert f"{flag}: {path}: Object contains unknown field `port`" in capsys.readouterr().err


def test_file_of_images_describes_simulated_ones_and_processes(tmp_path, capsys):
    path = tmp_path / "images.yaml"
    path.write_text("shop: {names: [shop]}\nexample.org/operator: {command: [operator]}\n")
    assert read("--container-runtime=process", f"--images={path}").simulation.images == path
    with pytest.raises(SystemExit):
        read(f"--images={path}")
    problem = (
        "example.org/operator has no names: an image runs as a process with --container-runtime=process only"
    )
    assert f"--images: {path}: {problem}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        read("--container-runtime=process")
    assert "--container-runtime=process needs --images" in capsys.readouterr().err


def test_processes_have_no_stages(tmp_path, capsys):
    images, stages = tmp_path / "images.yaml", tmp_path / "stages.yaml"
    images.write_text("example.org/operator: {command: [operator]}\n")
    stages.write_text("")
    with pytest.raises(SystemExit):
        read("--container-runtime=process", f"--images={images}", f"--stages={stages}")
    assert "--container-runtime=process cannot be combined with --stages" in capsys.readouterr().err


def test_older_flag_of_simulated_images_describes_no_processes(tmp_path, capsys):
    path = tmp_path / "images.yaml"
    path.write_text("example.org/operator: {command: [operator]}\n")
    with pytest.raises(SystemExit):
        read("--container-runtime=process", f"--images={path}", f"--simulated-images={path}")
    assert f"--simulated-images: {path}: example.org/operator has no names" in capsys.readouterr().err


def test_older_flag_of_unknown_programs_is_reported(capsys):
    assert read("--simulate-unknown-programs=fail").simulation.simulate_unknown_programs == "fail"
    problem = "Flag --simulate-unknown-programs has been deprecated, use --unknown-programs instead"
    assert problem in capsys.readouterr().err
    read("--unknown-programs=fail")
    assert capsys.readouterr().err == ""


def test_limit_of_nodes_advises_a_larger_range_only_where_that_helps(capsys):
    for flags, ends in (
        (["--simulate-nodes=15001"], False),
        (["--simulate-nodes=5000", "--node-cidr-mask-size=21"], True),
    ):
        with pytest.raises(SystemExit):
            read(*flags)
        assert ("with a larger --cluster-cidr" in capsys.readouterr().err) is ends


def test_flag_of_an_older_minor_is_accepted_as_long_as_the_server_may_have_it(capsys):
    assert read("--concurrent-service-syncs=1").ignored == ("concurrent-service-syncs",)
    assert read("--controllers=*,-route").controllers.controllers == ("*", "-route")
    with pytest.raises(SystemExit):
        read("--controllers=*,-route,-zzzz")
    assert "zzzz" in capsys.readouterr().err


def test_public_address_needs_an_authority_for_clients():
    assert read("--bind-address=0.0.0.0", "--client-ca-file=ca.crt").serving.bind_address == "0.0.0.0"


def test_controllers_of_own_packs_may_be_named_where_the_server_decides_on_packs(capsys):
    assert read("--controllers=*,-uniteddeployment-controller").controllers.packs is None
    with pytest.raises(SystemExit):
        read("--controllers=*,-uniteddeployment-controller", "--packs=")
    assert "uniteddeployment-controller" in capsys.readouterr().err


def test_older_flag_of_images_is_reported(tmp_path, capsys):
    path = tmp_path / "images.yaml"
    path.write_text("shop: {names: [shop]}")
    read(f"--simulated-images={path}")
    assert capsys.readouterr().err == "Flag --simulated-images has been deprecated, use --images instead\n"


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--simulate-node-zones=a"], {}),
        ([], {"MOCKUBE_CONTROLLER_MANAGER_SIMULATE_NODE_ZONES": "a"}),
    ],
    ids=["flag", "variable"],
)
def test_deprecated_flag_is_a_pool_and_reported(capsys, arguments, environment):
    config = parse([MASTER, "--simulate-nodes=3", *arguments], environment, KNOWN)
    assert config.simulation.simulate_nodes.text == "zone=a:3"
    assert capsys.readouterr().err == (
        "Flag --simulate-node-zones has been deprecated, use --simulate-nodes=zone=a:3 instead\n"
    )


def test_deprecated_flag_and_pools_are_refused(capsys):
    with pytest.raises(SystemExit):
        parse([MASTER, "--simulate-nodes=cpu=4:3", "--node-labels=disk=ssd"], {}, KNOWN)
    assert "error: --node-labels: pools have capacity, zones" in capsys.readouterr().err
