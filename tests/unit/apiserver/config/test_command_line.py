"""The flags of kube-apiserver, and the errors for invalid ones."""

from pathlib import Path

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.config.upstream import IGNORED


def read(*arguments, **environment):
    return parse(arguments, environment)


def test_defaults_are_local_and_secure():
    config = read()
    assert (config.serving.bind_address, config.serving.secure_port) == ("127.0.0.1", 6443)
    assert config.serving.http_port is None
    assert config.store.etcd_servers == ()
    assert config.store.data_dir is None
    assert config.ignored == ()


@pytest.mark.parametrize(
    ("arguments", "section", "field", "value"),
    [
        pytest.param(["--secure-port=0"], "serving", "secure_port", 0, id="equals"),
        pytest.param(["--secure-port", "8443"], "serving", "secure_port", 8443, id="two words"),
        pytest.param(["--secure_port=1"], "serving", "secure_port", 1, id="underscores"),
        pytest.param(
            ["--secure-port=1", "--secure-port=2"], "serving", "secure_port", 2, id="the last counts"
        ),
        pytest.param(["--bind-address=::1"], "serving", "bind_address", "::1", id="IPv6"),
        pytest.param(["--request-timeout=1m30s"], "serving", "request_timeout", 90.0, id="duration"),
        pytest.param(["--etcd-servers=a,b"], "store", "etcd_servers", ("a", "b"), id="list"),
        pytest.param(
            ["--etcd-servers=a", "--etcd-servers", "b,c"],
            "store",
            "etcd_servers",
            ("a", "b", "c"),
            id="repeated list",
        ),
        pytest.param(
            ["--tls-san=a.b,::1", "--tls-san=10.0.0.1"],
            "serving",
            "tls_san",
            ("a.b", "::1", "10.0.0.1"),
            id="hosts",
        ),
        pytest.param(
            ["--allowed-hosts=a.b,*.c.d", "--allowed-hosts=*"],
            "serving",
            "allowed_hosts",
            ("a.b", "*.c.d", "*"),
            id="patterns of hosts",
        ),
        pytest.param(["--data-dir=x"], "store", "data_dir", Path("x"), id="path"),
        pytest.param(["--fsync=false"], "store", "fsync", False, id="false"),
        pytest.param(
            ["--min-request-timeout=5"], "serving", "min_request_timeout", 5, id="seconds of a watch"
        ),
        pytest.param(["--fsync"], "store", "fsync", True, id="a bare flag is true"),
        pytest.param(["-v", "4"], "logging", "v", 4, id="short"),
        pytest.param(["-v=4"], "logging", "v", 4, id="short with equals"),
        pytest.param(["--v=4"], "logging", "v", 4, id="long and short"),
        pytest.param(
            ["--service-node-port-range=1-2"], "services", "service_node_port_range", range(1, 3), id="ports"
        ),
        *(
            pytest.param(
                [f"--service-cluster-ip-range={ranges}"],
                *("services", "service_cluster_ip_range", tuple(expected.split())),
                id=f"ranges for Services: {ranges}",
            )
            for ranges, expected in (
                ("", "10.0.0.0/24"),
                ("10.0.0.1/16", "10.0.0.0/16"),
                ("fd00::/112,10.0.0.0/16", "fd00::/112 10.0.0.0/16"),
            )
        ),
    ],
)
def test_flag_sets_its_field(arguments, section, field, value):
    assert getattr(getattr(read(*arguments), section), field) == value


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--version"], "Kubernetes v1.37.2\n"),
        (["--kubernetes-version=1.31", "--version=true"], "Kubernetes v1.31.14\n"),
    ],
)
def test_version_flag_prints_version_and_exits(arguments, printed, capsys):
    with pytest.raises(SystemExit) as ended:
        read(*arguments)
    assert (ended.value.code, capsys.readouterr().out) == (0, printed)


def test_reported_version_can_be_changed_within_release():
    assert read("--version=v1.37.2-custom").features.git_version == "v1.37.2-custom"
    assert read("--version=false").features.git_version == ""


def test_environment_variables_set_flags_and_flags_override_them():
    assert read(MOCKUBE_APISERVER_SECURE_PORT="1").serving.secure_port == 1
    assert read("--secure-port=2", MOCKUBE_APISERVER_SECURE_PORT="1").serving.secure_port == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--secure-port=x"], '--secure-port: "x" is not a whole number', id="no number"),
        pytest.param(
            ["--tls-cipher-suites=TLS_AES_128_GCM_SHA256,FOO"],
            "--tls-cipher-suites: Cipher suite FOO not supported or doesn't exist",
            id="unknown cipher suite",
        ),
        pytest.param(
            ["--tls-min-version=1.2"],
            '--tls-min-version: unknown tls version "1.2"',
            id="unknown TLS version",
        ),
        pytest.param(["--version=maybe"], '--version: "maybe" is neither', id="no version"),
        pytest.param(["--version=v1.2.3"], "must match major/minor/patch", id="another release"),
        pytest.param(["--secure-port=65536"], "--secure-port: 65536 is not a port", id="no port"),
        pytest.param(["--bind-address=here"], '--bind-address: "here" is not an IP address', id="no address"),
        pytest.param(["--allowed-hosts=a.*"], '--allowed-hosts: "a.*" is neither a host', id="no pattern"),
        pytest.param(["--tls-san=a,B_"], '--tls-san: "B_" is neither a host', id="no name"),
        pytest.param(
            ["--tls-san=fe80:"], '--tls-san: "fe80:" is not an IP address', id="no address of the new kind"
        ),
        *(
            pytest.param(
                [f"--service-account-max-token-expiration={duration}"],
                "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
                id=f"tokens that last {duration}",
            )
            for duration in ("59m59s", "1193047h")
        ),
        pytest.param(["--request-timeout=5"], "--request-timeout: time: missing unit", id="no unit"),
        pytest.param(
            ["--request-timeout=-5s"], "--request-timeout: -5s is negative: use 0s or more", id="negative"
        ),
        pytest.param(["--fsync=maybe"], '--fsync: "maybe" is neither', id="neither true nor false"),
        *(
            pytest.param(
                [f"--service-cluster-ip-range={ranges}"], says, id=f"no range for Services: {ranges}"
            )
            for ranges, says in (
                ("10.0.0/24", '--service-cluster-ip-range: "10.0.0/24" is not a range of addresses'),
                ("10.0.0.0/30", "the service cluster IP range must be at least 8 IP addresses"),
                ("10.0.0.0/24,10.1.0.0/24", "more than one range of an address family"),
                ("10.0.0.0/24,fd00::/112,fd01::/112", "more than one range of an address family"),
            )
        ),
        pytest.param(["--service-node-port-range=5-4"], "--service-node-port-range", id="ports backwards"),
        pytest.param(
            ["--logging-format=xml"], '--logging-format: "xml" is not one of text, json', id="no choice"
        ),
        pytest.param(
            ["--authorization-mode=Node,ABAC"], "authorization policy file not passed", id="no policies"
        ),
        pytest.param(["--authorization-config=/nowhere"], "No such file or directory", id="no such file"),
        pytest.param(["--authorization-mode=RBAC,RBAC"], "more than once", id="duplicate mode"),
        pytest.param(
            ["--authorization-mode=AlwaysAllow", "--bind-address=0.0.0.0"],
            "--bind-address is 0.0.0.0",
            id="AlwaysAllow on all interfaces",
        ),
        pytest.param(["--authorization-mode=RBCA"], '"RBCA" is not a valid mode', id="no mode"),
        pytest.param(["--tls-cert-file=a"], "--tls-cert-file and --tls-private-key-file", id="half a pair"),
        pytest.param(["--etcd-servers=a", "--data-dir=b"], "cannot be set together", id="two stores"),
        pytest.param(["--feature-gates=A=true"], "unrecognized feature gate: A", id="no gate"),
        pytest.param(["--feature-gates=WatchList"], "missing bool value for WatchList", id="half a gate"),
        pytest.param(
            ["--feature-gates=WatchList=on"],
            'invalid value of WatchList=on, err: strconv.ParseBool: parsing "on": invalid syntax',
            id="a gate ajar",
        ),
        pytest.param(
            ["--feature-gates=ServerSideApply=false"],
            "unrecognized feature gate: ServerSideApply",
            id="old gate",
        ),
        pytest.param(
            ["--feature-gates=JobManagedBy=false"],
            "cannot set feature gate JobManagedBy to false, feature is locked to true",
            id="locked gate",
        ),
        pytest.param(["--watch-cache-sizes=pods"], "invalid value of watch cache size: pods", id="no size"),
        pytest.param(
            ["--watch-cache-sizes=pods#x"], "invalid size of watch cache size: pods#x", id="odd size"
        ),
        pytest.param(
            ["--watch-cache-sizes=pods#-1"], "watch cache size cannot be negative: pods#-1", id="size below 0"
        ),
        pytest.param(
            ["--enable-admission-plugins=A"], 'enable-admission-plugins plugin "A" is unknown', id="no plugin"
        ),
        pytest.param(
            ["--disable-admission-plugins=A"],
            'disable-admission-plugins plugin "A" is unknown',
            id="off, no plugin",
        ),
        pytest.param(
            ["--enable-admission-plugins=Priority", "--disable-admission-plugins=Priority"],
            "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            id="on and off",
        ),
        pytest.param(
            ["--enable-admission-plugins=ImagePolicyWebhook"],
            'couldn\'t init admission plugin "ImagePolicyWebhook": no config specified',
            id="plugin not configured",
        ),
        pytest.param(["--secure-pot=1"], "unrecognized arguments: --secure-pot=1", id="misspelled flag"),
        pytest.param(["--secure=1"], "unrecognized arguments: --secure=1", id="no abbreviations"),
        pytest.param(["now"], "unrecognized arguments: now", id="too much"),
    ],
)
def test_invalid_flag_value_is_refused_by_name(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        read(*arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_flags_without_effect_are_recorded_as_ignored():
    config = read("--vmodule=A=1", "--profiling", "--goaway-chance", "0.1", "--secure-port=1")
    assert config.ignored == ("goaway-chance", "profiling", "vmodule")
    assert config.serving.secure_port == 1


def test_unsupported_feature_gates_and_settings_are_reported():
    config = read(
        "--feature-gates=WatchList=false,JobManagedBy=true,DetectCacheInconsistency=false,GenericWorkload=true",
        "--feature-gates=kube:EventedPLEG=true,WatchListClient=true",
        "--watch-cache=false",
        "--default-watch-cache-size=0",
        "--watch-cache-sizes=pods#0,nodes#100",
        "--disable-admission-plugins=Priority,AlwaysAdmit",
        "--enable-admission-plugins=LimitRanger",
        "--allow-privileged=false",
    )
    assert config.ignored_flags() == (
        "--feature-gates=EventedPLEG=true",
        "--feature-gates=GenericWorkload=true",
        "--watch-cache=false",
        "--default-watch-cache-size=0",
        "--watch-cache-sizes=pods#0",
    )
    assert (config.ignored, read().ignored_flags()) == ((), ())


@pytest.mark.parametrize(("minor", "is_known"), [("1.32", False), ("1.33", True)])
def test_admission_plugins_are_those_of_minor(minor, is_known, capsys):
    flags = [f"--kubernetes-version={minor}", "--disable-admission-plugins=PodTopologyLabels"]
    if is_known:
        read(*flags)
        return
    with pytest.raises(SystemExit):
        read(*flags)
    assert 'plugin "PodTopologyLabels" is unknown' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("minor", "is_streamed"), [("1.31", False), ("1.32", True), ("1.33", False), ("1.34", True)]
)
def test_watch_list_gate_follows_minor(minor, is_streamed):
    assert FeatureGates(minor).is_on("WatchList") == is_streamed


@pytest.mark.parametrize(("minor", "is_compressed"), [("1.36", False), ("1.37", True)])
def test_initial_events_are_compressed_since_1_37(minor, is_compressed):
    assert FeatureGates(minor).is_on("WatchListCompression") == is_compressed


def test_no_flag_is_both_supported_and_ignored():
    parse([f"--{name}=" for name in IGNORED], {})


def test_help_lists_every_flag_by_section(capsys):
    with pytest.raises(SystemExit) as ended:
        read("--help")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for words in ("Serving:", "--secure-port PORT", "Store:", "--fsync [true|false]", "Authentication:"):
        assert words in shown
    assert "--profiling" not in shown


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            "api/all=false",
            "--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true",
        ),
        ("api/all=x", "invalid value api/all=x"),
        ("api/beta=", "invalid value api/beta="),
        ("foo/v1=true", "unknown api groups foo/v1"),
        ("foo/v1=true,bar/v2/x=true", "unknown api groups bar/v2,foo/v1"),
        ("apps/v9=true", "group version apps/v9 that has not been registered"),
        (
            "apps/v1/Deployments=false",
            'invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "Deployments"',
        ),
        ("apps=true", "runtime-config invalid key apps"),
        ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
        (
            "apps/v1=nope",
            'invalid value of apps/v1: nope, err: strconv.ParseBool: parsing "nope": invalid syntax',
        ),
        ("v1=false", "--runtime-config cannot turn off /v1: the server itself needs it"),
        ("v1/configmaps=false", "--runtime-config cannot turn off /v1: the server itself needs it"),
        (
            "flowcontrol.apiserver.k8s.io/v1=false",
            "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with --enable-priority-and-fairness=true",
        ),
        ("=true", "runtime-config invalid key "),
        (
            "api/ga=false,flowcontrol.apiserver.k8s.io/v1=true",
            "--runtime-config cannot turn off /v1: the server itself needs it",
        ),
        (
            "apiextensions.k8s.io/v1=false",
            "--runtime-config cannot turn off apiextensions.k8s.io/v1: the server itself needs it",
        ),
        (
            "/v1/namespaces=false",
            "--runtime-config cannot turn off /v1/namespaces: the server itself needs it",
        ),
        (
            "resource.k8s.io/v1alpha3=true",
            "--runtime-config: resource.k8s.io/v1alpha3/devicetaintrules is not supported",
        ),
    ],
)
def test_invalid_runtime_config_has_upstreams_message(given, says, capsys):
    with pytest.raises(SystemExit):
        read(f"--runtime-config={given}")
    assert capsys.readouterr().err.endswith(f"error: {says}\n")


@pytest.mark.parametrize(
    "given", ["apps/v1/nothere=true", "api/legacy=false", "apps/v1beta1=true", "batch/v1", "api/beta=true"]
)
def test_runtime_config_accepted_upstream_is_accepted(given):
    read(f"--runtime-config={given}")


def test_unsupported_apis_of_runtime_config_are_named():
    named = read("--runtime-config=api/beta=true").ignored_flags()
    assert "--runtime-config=coordination.k8s.io/v1beta1/leasecandidates=true" in named
