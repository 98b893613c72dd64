"""Validation of the other fields of a pod's spec: names, DNS, policies, deadlines, claims and overhead."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors
from tests.support.valid_pods import POD


def errors_of(change):
    return create_errors("v1", "Pod", changed(POD, {f"spec.{path}": value for path, value in change.items()}))


def dns_errors(config):
    return errors_of({"dnsPolicy": "None", "dnsConfig": config})


def resource_errors(requirements):
    """Return the errors of a container with resources, in a pod with two claims."""
    claims = [{"name": "d", "resourceClaimName": "x"}, {"name": "e", "resourceClaimTemplateName": "y"}]
    texts = errors_of({"resourceClaims": claims, "containers.0.resources": requirements})
    return [text.removeprefix("spec.containers[0].resources") for text in texts]


def claim_errors(claims):
    return [text.removeprefix("spec.resourceClaims") for text in errors_of({"resourceClaims": claims})]


FIELDS = [
    pytest.param({"restartPolicy": ABSENT}, ["spec.restartPolicy: Required value"], id="no restart policy"),
    pytest.param({"restartPolicy": "Sometimes"},
        ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
        id="unknown restart policy"),
    pytest.param({"dnsPolicy": ""}, ["spec.dnsPolicy: Required value"], id="no DNS policy"),
    pytest.param({"dnsPolicy": "Cluster"},
        [('spec.dnsPolicy: Unsupported value: "Cluster": supported values: "ClusterFirstWithHostNet", '
          '"ClusterFirst", "Default", "None"')], id="unknown DNS policy"),
    pytest.param({"dnsPolicy": "None"},
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        id="DNS policy None without configuration"),
    pytest.param({"activeDeadlineSeconds": 1}, [], id="lowest deadline"),
    pytest.param({"activeDeadlineSeconds": 0},
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        id="deadline zero"),
    pytest.param({"activeDeadlineSeconds": 2147483647}, [], id="highest deadline"),
    pytest.param({"activeDeadlineSeconds": 2147483648},
        ["spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647, inclusive"],
        id="deadline too high"),
    pytest.param({"terminationGracePeriodSeconds": 0}, [], id="grace period zero"),
    pytest.param({"terminationGracePeriodSeconds": -1}, [], id="negative grace period"),
    pytest.param({"serviceAccountName": "A"},
        [('spec.serviceAccountName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid account"),
    pytest.param({"nodeName": "A"},
        [('spec.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid node"),
    pytest.param({"hostname": "a" * 63}, [], id="host name of 63 characters"),
    pytest.param({"hostname": "a" * 64},
        ['spec.hostname: Invalid value: "' + "a" * 64 + '": must be no more than 63 characters'],
        id="host name of 64 characters"),
    pytest.param({"hostname": "a.b"},
        ['spec.hostname: Invalid value: "a.b": must not contain dots'], id="host name with a dot"),
    pytest.param({"subdomain": "a.b"},
        ['spec.subdomain: Invalid value: "a.b": must not contain dots'], id="subdomain with a dot"),
    pytest.param({"priorityClassName": "A"},
        [('spec.priorityClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid priority class"),
    pytest.param({"runtimeClassName": "A"},
        [('spec.runtimeClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid runtime class"),
    pytest.param({"runtimeClassName": ""},
        [('spec.runtimeClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="empty runtime class"),
    pytest.param({"preemptionPolicy": "Never"}, [], id="preemption"),
    pytest.param({"preemptionPolicy": ""}, ["spec.preemptionPolicy: Required value"], id="empty preemption"),
    pytest.param({"preemptionPolicy": "Always"},
        ['spec.preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"'],
        id="unknown preemption"),
    pytest.param({"readinessGates": [{"conditionType": "example.com/a"}]}, [], id="readiness gate"),
    pytest.param({"readinessGates": [{}]},
        ['spec.readinessGates[0].conditionType: Invalid value: "": name part must be non-empty',
         ('spec.readinessGates[0].conditionType: Invalid value: "": name part must consist of alphanumeric '
          "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  "
          "or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="readiness gate without type"),
    pytest.param({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a.b"]}]}, [], id="host alias"),
    pytest.param({"hostAliases": [{"hostnames": ["a"]}]},
        [('spec.hostAliases[0].ip: Invalid value: "": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)")], id="host alias without address"),
    pytest.param({"hostAliases": [{"ip": "10.0.0", "hostnames": ["a"]}]},
        [('spec.hostAliases[0].ip: Invalid value: "10.0.0": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)")], id="host alias with invalid address"),
    pytest.param({"hostAliases": [{"ip": "010.0.0.1", "hostnames": ["a"]}]},
        ['spec.hostAliases[0].ip: Invalid value: "010.0.0.1": must not have leading 0s'],
        id="host alias with leading zeros"),
    pytest.param({"hostAliases": [{"ip": "::1", "hostnames": ["a", "B"]}]},
        [('spec.hostAliases[0].hostnames[1]: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="host alias with invalid name"),
    pytest.param({"hostnameOverride": "a.b"}, [], id="override of the host name"),
    pytest.param({"hostnameOverride": ""},
        [('spec.hostnameOverride: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="empty override of the host name"),
    pytest.param({"hostnameOverride": "a" * 63 + ".b"},
        ["spec.hostnameOverride: Too long: may not be more than 64 bytes"], id="override of 64 characters"),
    pytest.param({"hostnameOverride": "a", "setHostnameAsFQDN": True, "hostNetwork": True},
        ["spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
         "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true"],
        id="override with other host names"),
    pytest.param({"overhead": {"cpu": "1", "memory": "1Mi"}}, [], id="overhead"),
    pytest.param({"overhead": {"cpu": "-1"}},
        ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'], id="negative overhead"),
    pytest.param({"overhead": {"gpu": "1"}},
        ['spec.overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
         'spec.overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers'],
        id="overhead of unknown resource"),
    pytest.param({"serviceAccountName": "", "volumes": [{"name": "t", "projected": {"sources": [{}, {"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}]}}]},
        [("spec.volumes[0].projected.sources[1].serviceAccountToken: Forbidden: must not be specified when "
          "serviceAccountName is not set")], id="token without account"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), FIELDS)
def test_fields_of_specs_are_validated(change, expected):
    assert errors_of(change) == expected


DNS = [
    pytest.param({"nameservers": ["10.0.0.1"]}, [], id="server"),
    pytest.param({},
        [("spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when "
          "`dnsPolicy` is None")], id="no servers"),
    pytest.param({"nameservers": []},
        [("spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when "
          "`dnsPolicy` is None")], id="empty servers"),
    pytest.param({"nameservers": ["10.0.0.1", "::1", "10.0.0.3"]}, [], id="three servers"),
    pytest.param({"nameservers": ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]},
        [('spec.dnsConfig.nameservers: Invalid value: ["10.0.0.1","10.0.0.2","10.0.0.3","10.0.0.4"]: must not '
          "have more than 3 nameservers")], id="four servers"),
    pytest.param({"nameservers": ["a"]},
        [('spec.dnsConfig.nameservers[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or '
          "2001:db8::ffff)")], id="invalid server"),
    pytest.param({"nameservers": ["10.0.0.1"], "searches": [".", "a.b.", "_a.b"]}, [], id="searches"),
    pytest.param({"nameservers": ["10.0.0.1"], "searches": ["A", "", "a.."]},
        [('spec.dnsConfig.searches[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"),
         ('spec.dnsConfig.searches[1]: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"),
         ('spec.dnsConfig.searches[2]: Invalid value: "a.": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')")], id="invalid searches"),
    pytest.param({"nameservers": ["10.0.0.1"], "searches": ["a"] * 32}, [], id="32 searches"),
    pytest.param({"nameservers": ["10.0.0.1"], "searches": ["a"] * 33},
        [("spec.dnsConfig.searches: Invalid value: "
          '["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"]: '
          "must not have more than 32 search paths")], id="33 searches"),
    pytest.param({"nameservers": ["10.0.0.1"], "options": [{"name": "ndots", "value": "2"}]}, [], id="option"),
    pytest.param({"nameservers": ["10.0.0.1"], "options": [{"value": "2"}]},
        ["spec.dnsConfig.options[0]: Required value: must not be empty"], id="option without name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), DNS)
def test_dns_configurations_are_validated(change, expected):
    assert dns_errors(change) == expected


RESOURCES = [
    pytest.param({}, [], id="nothing"),
    pytest.param({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, [], id="request below limit"),
    pytest.param({"requests": {"cpu": "1000m"}, "limits": {"cpu": "1"}}, [], id="request equal to limit"),
    pytest.param({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        ['.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'], id="request above limit"),
    pytest.param({"limits": {"cpu": "0", "memory": "0", "ephemeral-storage": "0"}}, [], id="zero"),
    pytest.param({"limits": {"memory": "-1"}},
        ['.limits[memory]: Invalid value: "-1": must be greater than or equal to 0'], id="negative limit"),
    pytest.param({"requests": {"memory": "-1Ki"}},
        ['.requests[memory]: Invalid value: "-1Ki": must be greater than or equal to 0'], id="negative request"),
    pytest.param({"limits": {"gpu": "1"}},
        ['.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
         '.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers'], id="unknown resource"),
    pytest.param({"limits": {"storage": "1"}},
        ['.limits[storage]: Invalid value: "storage": must be a standard resource for containers'], id="storage"),
    pytest.param({"limits": {"requests.cpu": "1"}},
        ['.limits[requests.cpu]: Invalid value: "requests.cpu": must be a standard resource for containers'],
        id="resource of a quota"),
    pytest.param({"limits": {"a b": "1"}},
        [(".limits[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or "
          "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         '.limits[a b]: Invalid value: "a b": must be a standard resource for containers'], id="invalid name"),
    pytest.param({"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}},
        [], id="extended resource"),
    pytest.param({"limits": {"example.com/gpu": "500m"}},
        ['.limits[example.com/gpu]: Invalid value: "500m": must be an integer'], id="extended resource in parts"),
    pytest.param({"requests": {"example.com/gpu": "1"}},
        [".limits: Required value: Limit must be set for non overcommitable resources"],
        id="extended resource without limit"),
    pytest.param({"limits": {"example.com/gpu": "2"}, "requests": {"example.com/gpu": "1"}},
        ['.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2'],
        id="extended resource below limit"),
    pytest.param({"limits": {"requests.example.com/gpu": "1"}},
        [(".limits[requests.example.com/gpu]: Invalid value: \"requests.example.com/gpu\": doesn't follow "
          "extended resource name standard")], id="extended resource named as a request"),
    pytest.param({"limits": {"kubernetes.io/a": "1"}}, [], id="resource of Kubernetes"),
    pytest.param({"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "4Mi"}},
        [], id="huge pages"),
    pytest.param({"limits": {"hugepages-2Mi": "4Mi"}},
        [": Forbidden: HugePages require cpu or memory"], id="huge pages alone"),
    pytest.param({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
        ['.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi'],
        id="part of a huge page"),
    pytest.param({"limits": {"hugepages-a": "2Mi", "cpu": "1"}},
        ['.limits[hugepages-a]: Invalid value: "2Mi": 2Mi is not positive integer multiple of hugepages-a'],
        id="huge pages of no size"),
    pytest.param({"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "2Mi"}},
        ['.requests: Invalid value: "2Mi": must be equal to hugepages-2Mi limit of 4Mi'], id="huge pages below limit"),
    pytest.param({"requests": {"hugepages-2Mi": "2Mi", "cpu": "1"}},
        [".limits: Required value: Limit must be set for non overcommitable resources"], id="huge pages without limit"),
    pytest.param({"claims": [{"name": "d"}, {"name": "e", "request": "a"}, {"name": "e", "request": "b"}]},
        [], id="claims"),
    pytest.param({"claims": [{}]}, [".claims[0]: Required value"], id="claim without name"),
    pytest.param({"claims": [{"name": "f"}]},
        ['.claims[0]: Not found: "f": must be one of the names in pod.spec.resourceClaims: d, e'],
        id="claim that the pod does not have"),
    pytest.param({"claims": [{"name": "d"}, {"name": "d"}]}, ['.claims[1]: Duplicate value: "d"'], id="claim twice"),
    pytest.param({"claims": [{"name": "d", "request": "a"}, {"name": "d"}]},
        ['.claims[1]: Duplicate value: "d"'], id="claim as a whole after a part"),
    pytest.param({"claims": [{"name": "d"}, {"name": "d", "request": "a"}]},
        ['.claims[1]: Duplicate value: "d"'], id="part of a claim after the whole"),
    pytest.param({"claims": [{"name": "d", "request": "a"}, {"name": "d", "request": "a"}]},
        ['.claims[1]: Duplicate value: "d/a"'], id="part of a claim twice"),
    pytest.param({"claims": [{"name": "d", "request": "A"}]},
        [('.claims[0].request: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="part of a claim with invalid name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), RESOURCES)
def test_resources_are_validated(change, expected):
    assert resource_errors(change) == expected


OF_PODS = [
    pytest.param({"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
        [], id="resources"),
    pytest.param({"resources": {"limits": {"ephemeral-storage": "1Gi"}}},
        [('spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: '
          '"cpu", "hugepages-", "memory"')], id="ephemeral storage"),
    pytest.param({"resources": {"claims": []}},
        ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"], id="claims"),
    pytest.param({"resources": {"claims": [{"name": "f"}]}},
        ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
         ('spec.resources.claims[0]: Not found: "f": must be one of the names in pod.spec.resourceClaims which '
          "is empty")], id="claims that the pod does not have"),
    pytest.param({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        ['spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        id="request above limit"),
    pytest.param({"resources": {"requests": {"cpu": "1"}}, "containers.0.resources": {"requests": {"cpu": "2"}}},
        [('spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate '
          "container requests of 2")], id="containers request more"),
    pytest.param({"resources": {"limits": {"cpu": "1"}}, "containers.0.resources": {"limits": {"cpu": "2"}}},
        [('spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod '
          "limits of 1")], id="container has higher limit"),
    pytest.param({"resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "2Mi"}}, "containers.0.resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "4Mi"}}},
        [('spec.resources.requests[hugepages-2Mi]: Invalid value: "2Mi": must be greater than or equal to '
          "aggregate container requests of 4Mi"),
         ('spec.resources.limits[hugepages-2Mi]: Invalid value: "2Mi": must be greater than or equal to '
          "aggregate container limits of 4Mi"),
         ('spec.resources.containers[0][hugepages-2Mi].limits: Invalid value: "4Mi": must be less than or equal '
          "to pod limits of 2Mi")], id="containers have more huge pages"),
    pytest.param({"os": {"name": "windows"}, "resources": {"limits": {"cpu": "1"}}},
        ["spec.resources: Forbidden: may not be set for a windows pod"], id="Windows"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), OF_PODS)
def test_resources_of_pods_are_validated(change, expected):
    assert errors_of(change) == expected


CLAIMS = [
    pytest.param([{"name": "d", "resourceClaimName": "x"}, {"name": "e", "resourceClaimTemplateName": "y"}],
        [], id="claims"),
    pytest.param([{"resourceClaimName": "x"}], ["[0].name: Required value"], id="claim without name"),
    pytest.param([{"name": "D", "resourceClaimName": "x"}],
        [('[0].name: Invalid value: "D": a lowercase RFC 1123 label must consist of lower case alphanumeric '
          "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
          "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")], id="claim with invalid name"),
    pytest.param([{"name": "d", "resourceClaimName": "x"}, {"name": "d", "resourceClaimName": "y"}],
        ['[1].name: Duplicate value: "d"'], id="claim twice"),
    pytest.param([{"name": "d"}],
        [('[0]: Invalid value: {"Name":"d","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must '
          "specify one of: `resourceClaimName`, `resourceClaimTemplateName`")], id="claim without source"),
    pytest.param([{"name": "d", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}],
        [('[0]: Invalid value: {"Name":"d","ResourceClaimName":"x","ResourceClaimTemplateName":"y"}: at most '
          "one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")], id="claim with two sources"),
    pytest.param([{"name": "d", "resourceClaimName": "X"}, {"name": "e", "resourceClaimTemplateName": ""}],
        [('[0].resourceClaimName: Invalid value: "X": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"),
         ('[1].resourceClaimTemplateName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid names of sources"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLAIMS)
def test_resource_claims_are_validated(change, expected):
    assert claim_errors(change) == expected


LONG = ".".join(["a" * 63] * 3 + ["a" * 61])


def test_searches_have_at_most_2048_characters():
    """Eight names of 253 characters have 2031 with their spaces."""
    servers = {"nameservers": ["10.0.0.1"]}
    assert dns_errors({**servers, "searches": [*[LONG] * 8, "a" * 16]}) == []
    (error,) = dns_errors({**servers, "searches": [*[LONG] * 8, "a" * 17]})
    assert error.startswith("spec.dnsConfig.searches: Invalid value: [")
    assert error.endswith("]: must not have more than 2048 characters (including spaces) in the search list")
