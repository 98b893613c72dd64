"""The IP families of a Service, and which combinations are refused."""

import pytest

from mockube.apiserver.allocation.families import IPV4, IPV6, init_ip_families, is_well_formed

SINGLE, DUAL = ("SingleStack", "RequireDualStack")
V4, V6 = "10.0.0.1", "fd00::1"


def service(*addresses, **spec):
    given = {"clusterIP": addresses[0], "clusterIPs": [*addresses]} if addresses else {}
    return {"type": "ClusterIP", "selector": {"a": "b"}} | given | spec


@pytest.mark.parametrize(
    ("spec", "configured", "policy", "families"),
    [
        pytest.param(service(), [IPV4], SINGLE, [IPV4], id="family of the cluster"),
        pytest.param(service(), [IPV6, IPV4], SINGLE, [IPV6], id="first family of a dual-stack cluster"),
        pytest.param(service(V6), [IPV4, IPV6], SINGLE, [IPV6], id="family of the address"),
        pytest.param(
            service(ipFamilyPolicy="PreferDualStack"),
            [IPV4],
            None,
            [IPV4],
            id="PreferDualStack on a single-stack cluster",
        ),
        pytest.param(
            service(ipFamilyPolicy="PreferDualStack"),
            [IPV4, IPV6],
            None,
            [IPV4, IPV6],
            id="PreferDualStack on a dual-stack cluster",
        ),
        pytest.param(
            service(V6, ipFamilyPolicy=DUAL), [IPV4, IPV6], None, [IPV6, IPV4], id="secondary family is added"
        ),
        pytest.param(service("None"), [IPV4], SINGLE, [IPV4], id="headless"),
        pytest.param(
            service("None", selector={}), [IPV4], DUAL, [IPV4, IPV6], id="headless without selector"
        ),
        pytest.param(
            service("None", selector={}, ipFamilies=[IPV6], ipFamilyPolicy=SINGLE),
            [IPV4],
            None,
            [IPV6],
            id="headless, in a family that the cluster does not have",
        ),
    ],
)
def test_ip_families_of_new_service(spec, configured, policy, families):
    policy = policy or spec["ipFamilyPolicy"]
    assert not init_ip_families(spec, None, configured)
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"]) == (policy, families)


def test_external_name_service_has_no_ip_family():
    spec = {"type": "ExternalName"}
    assert not init_ip_families(spec, None, [IPV4])
    assert spec == {"type": "ExternalName"}


@pytest.mark.parametrize(
    ("spec", "configured", "expected"),
    [
        pytest.param(
            service(ipFamilyPolicy=DUAL),
            [IPV4],
            'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
            "this cluster is not configured for dual-stack services",
            id="cluster is not dual-stack",
        ),
        pytest.param(
            service(ipFamilies=[IPV6]),
            [IPV4],
            'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
            id="family not configured",
        ),
        pytest.param(
            service(V6),
            [IPV4],
            'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster',
            id="an address of another family",
        ),
        pytest.param(
            service(V4, V6),
            [IPV4, IPV6],
            'spec.ipFamilyPolicy: Invalid value: "SingleStack": '
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified",
            id="two addresses, one stack",
        ),
        pytest.param(
            service(ipFamilies=[IPV4, IPV6]),
            [IPV4, IPV6],
            'spec.ipFamilyPolicy: Invalid value: "SingleStack": '
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
            id="two families, one stack",
        ),
    ],
)
def test_invalid_ip_families_of_new_service_are_refused(spec, configured, expected):
    assert [str(error) for error in init_ip_families(spec, None, configured)] == [expected]


OLD = service(V4, V6, ipFamilies=[IPV4, IPV6], ipFamilyPolicy=DUAL)


def test_single_stack_policy_releases_secondary_family():
    spec = OLD | {"ipFamilyPolicy": SINGLE}
    assert not init_ip_families(spec, OLD, [IPV4, IPV6])
    assert (spec["clusterIPs"], spec["ipFamilies"]) == ([V4], [IPV4])


def test_dual_stack_policy_adds_secondary_family():
    old = service(V4, ipFamilies=[IPV4], ipFamilyPolicy=SINGLE)
    spec = old | {"ipFamilyPolicy": DUAL}
    assert not init_ip_families(spec, old, [IPV4, IPV6])
    assert spec["ipFamilies"] == [IPV4, IPV6]


def test_secondary_family_is_not_released_without_single_stack_policy():
    spec = OLD | {"clusterIPs": [V4], "ipFamilies": [IPV4]}
    assert [str(error) for error in init_ip_families(spec, OLD, [IPV4, IPV6])] == [
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
        f"must be 'SingleStack' to release the secondary {what}"
        for what in ("cluster IP", "IP family")
    ]


def test_prefer_dual_stack_service_is_unchanged_by_update():
    old = service(V4, ipFamilies=[IPV4], ipFamilyPolicy="PreferDualStack")
    spec = dict(old)
    assert not init_ip_families(spec, old, [IPV4, IPV6])
    assert spec == old


def test_omitted_ip_family_policy_is_kept():
    spec = {name: value for name, value in OLD.items() if name != "ipFamilyPolicy"}
    assert not init_ip_families(spec, OLD, [IPV4, IPV6])
    assert spec == OLD


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(service(), True, id="no addresses"),
        pytest.param(service(V4, V6), True, id="two addresses"),
        pytest.param(service("None"), True, id="headless"),
        pytest.param(service("rubbish"), False, id="no address"),
        pytest.param(service("None", V4), False, id="headless, with an address"),
        pytest.param(service(V4) | {"clusterIP": V6}, False, id="clusterIP is not the first of clusterIPs"),
        pytest.param(service(V4, ipFamilies=[IPV6]), False, id="an address of another family"),
        pytest.param(service(ipFamilies=[IPV4, IPV4]), False, id="duplicate family"),
        pytest.param(service(ipFamilies=["IPv5"]), False, id="no family"),
        pytest.param(service(V4, V6, "fd00::2"), False, id="three addresses"),
    ],
)
def test_is_well_formed(spec, expected):
    assert is_well_formed(spec) == expected
