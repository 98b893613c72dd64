"""Validation, warnings and printer columns that are different in older minor versions."""

from datetime import UTC, datetime

import pytest

from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.built_in_kinds import printer_of_kind
from mockube.apiserver.kinds.served_kinds import kinds_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PODS, SERVICES = ("", "pods"), ("", "services")
STATEFUL_SETS = ("apps", "statefulsets")


def row(resource, minor):
    return next(
        kind.resource for kind in kinds_of(minor).all if (kind.resource.group, kind.resource.name) == resource
    )


def create_errors(resource, tree, minor, name="a"):
    whole = {"metadata": {"name": name, "namespace": "default"}} | tree
    errors = kind_rules.check_create(row(resource, minor), whole, kinds_of(minor))
    return [str(error) for error in errors]


def minors_with_errors(resource, tree, name="a"):
    """Return the minor versions that refuse an object that the newest one accepts."""
    assert create_errors(resource, tree, minors.NEWEST, name) == []
    return [minor for minor in minors.OLDER if create_errors(resource, tree, minor, name)]


def pod(**container):
    usual = {"name": "a", "image": "a", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
    spec = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
    return {"spec": spec | {"containers": [usual | container]}}


def service(**spec):
    usual = {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }
    return {"spec": usual | spec}


def test_environment_variable_names_are_strict_until_1_31():
    assert minors_with_errors(PODS, pod(env=[{"name": "1:a"}])) == ["1.31", "1.30", "1.29"]


def test_zero_sleep_is_refused_until_1_32():
    lifecycle = {"preStop": {"sleep": {"seconds": 0}}}
    assert minors_with_errors(PODS, pod(lifecycle=lifecycle)) == ["1.32", "1.31", "1.30", "1.29"]


def test_search_domains_with_underscores_are_refused_until_1_32():
    tree = pod()
    tree["spec"]["dnsConfig"] = {"searches": ["_tcp.example.com"]}
    assert minors_with_errors(PODS, tree) == ["1.32", "1.31", "1.30", "1.29"]


def test_traffic_distribution_values_until_1_33():
    assert minors_with_errors(SERVICES, service(trafficDistribution="PreferSameNode")) == [*minors.OLDER[3:]]
    (problem,) = create_errors(SERVICES, service(trafficDistribution="PreferSameNode"), "1.31")
    assert problem == (
        'spec.trafficDistribution: Unsupported value: "PreferSameNode": supported values: "PreferClose"'
    )


def test_service_names_start_with_letter_until_1_35():
    assert minors_with_errors(SERVICES, service(), name="1a") == [*minors.OLDER[1:]]


def test_stateful_set_templates_are_not_validated_until_1_33():
    tree = {
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "serviceName": "a",
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always"}},
        }
    }
    taken = [minor for minor in minors.MINORS if not create_errors(STATEFUL_SETS, tree, minor)]
    assert taken == ["1.33", "1.32", "1.31", "1.30", "1.29"]


def test_unchanged_invalid_value_is_not_reported():
    kinds, resource = kinds_of("1.31"), row(PODS, "1.31")
    old = {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}} | pod(
        env=[{"name": "1:a"}]
    )
    assert kind_rules.check_update(resource, "", old, old, kinds) == []


@pytest.mark.parametrize(
    ("kind", "minor", "columns"),
    [
        (GroupKind("", "ResourceQuota"), "1.32", ["Name", "Age", "Request", "Limit"]),
        (GroupKind("", "ResourceQuota"), "1.33", ["Name", "Request", "Limit", "Age"]),
        (GroupKind("", "ServiceAccount"), "1.34", ["Name", "Secrets", "Age"]),
        (GroupKind("", "ServiceAccount"), "1.35", ["Name", "Age"]),
        (GroupKind("scheduling.k8s.io", "PriorityClass"), "1.31", ["Name", "Value", "Global-Default", "Age"]),
    ],
)
def test_columns_are_those_of_minor(kind, minor, columns):
    printer = printer_of_kind(kind, kinds_of(minor))
    assert [column.name for column in printer.columns] == columns


def test_service_account_secrets_column_counts_secrets():
    printer = printer_of_kind(GroupKind("", "ServiceAccount"), kinds_of("1.31"))
    account = {"metadata": {"name": "a"}, "secrets": [{"name": "b"}]}
    assert printer.cells(account, NOW)[:2] == ["a", 1]


def test_pods_have_no_generation_until_1_32():
    counted = [
        minor
        for minor in minors.MINORS
        if next(
            iter(
                kinds_of(minor).strategies[key]
                for key in kinds_of(minor).strategies
                if key.resource == "pods"
            )
        ).first_generation
    ]
    assert counted == ["1.37", "1.36", "1.35", "1.34", "1.33"]


# --- addresses


@pytest.mark.parametrize(
    ("resource", "tree"),
    [
        (PODS, {"hostAliases": [{"ip": "010.0.0.1", "hostnames": ["a"]}]}),
        (PODS, {"hostAliases": [{"ip": "::ffff:10.0.0.1", "hostnames": ["a"]}]}),
        (SERVICES, {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.1/8"]}),
        (SERVICES, {"externalIPs": ["010.0.0.1"]}),
    ],
)
def test_sloppy_addresses_are_valid_until_1_35(resource, tree):
    whole = {"spec": (pod() if resource == PODS else service())["spec"] | tree}
    refusing = [
        minor
        for minor in minors.MINORS
        if any("must not " in error for error in create_errors(resource, whole, minor))
    ]
    assert refusing == ["1.37", "1.36"]


def test_cluster_ips_of_services_are_strict_in_all_minors():
    tree = service(clusterIP="010.0.0.1", clusterIPs=["010.0.0.1"])
    assert all(
        "must not have leading 0s" in create_errors(SERVICES, tree, minor)[0] for minor in minors.MINORS
    )


# --- warnings

FUTURE = "a future Kubernetes release"
LEADING_ZERO = "IPv4 field has octet with leading zero"
APPLY_LOOPS = "which may cause controller apply-loops"


def warnings_of(resource, tree, minor):
    kind = next(
        kind
        for kind in kinds_of(minor).all
        if (kind.resource.group, kind.resource.name) == resource and kind.resource.version == "v1"
    )
    return [*kind.warnings.create(tree)]


@pytest.mark.parametrize(
    ("resource", "tree", "part", "since"),
    [
        (
            ("", "persistentvolumes"),
            {"spec": {"persistentVolumeReclaimPolicy": "Recycle"}},
            "Recycle",
            "1.30",
        ),
        (
            ("", "serviceaccounts"),
            {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}},
            "deprecated in v1.32+",
            "1.32",
        ),
        (SERVICES, service(clusterIP="None", sessionAffinity="ClientIP"), "headless", "1.34"),
        (SERVICES, service(externalIPs=["1.2.3.4"]), "externalIPs is deprecated", "1.36"),
        (
            ("", "resourcequotas"),
            {"spec": {"hard": {"requests.cpu": 5, "limits.cpu": 2}}},
            "less than",
            "1.35",
        ),
        (
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            {
                "spec": {
                    "versions": [
                        {"name": "v1", "schema": {"openAPIV3Schema": {"type": "string", "format": "x"}}}
                    ]
                }
            },
            "unrecognized format",
            "1.34",
        ),
    ],
)
def test_warning_begins_with_its_minor(resource, tree, part, since):
    warned = [
        minor for minor in minors.MINORS if any(part in text for text in warnings_of(resource, tree, minor))
    ]
    assert warned == [minor for minor in minors.MINORS if not minors.is_before(minor, since)]


@pytest.mark.parametrize(
    ("address", "minor", "warning"),
    [
        (
            "010.0.0.1",
            "1.32",
            f'IP address was accepted, but will be invalid in {FUTURE}: ParseAddr("010.0.0.1"): {LEADING_ZERO}',
        ),
        (
            "010.0.0.1",
            "1.33",
            f'non-standard IP address "010.0.0.1" will be considered invalid in {FUTURE}: use "10.0.0.1"',
        ),
        (
            "2001:DB8::1",
            "1.32",
            f'IPv6 address "2001:DB8::1" is not in RFC 5952 canonical format ("2001:db8::1"), {APPLY_LOOPS}',
        ),
        (
            "2001:DB8::1",
            "1.35",
            'IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")',
        ),
    ],
)
def test_warning_of_address_of_service_has_words_of_minor(address, minor, warning):
    assert warnings_of(SERVICES, service(externalIPs=[address]), minor) == [f"spec.externalIPs[0]: {warning}"]


def test_only_services_are_warned_of_addresses_before_1_33():
    policy = {"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]}}
    warned = [
        minor
        for minor in minors.MINORS
        if warnings_of(("networking.k8s.io", "networkpolicies"), policy, minor)
    ]
    assert warned == ["1.37", "1.36", "1.35", "1.34", "1.33"]
