"""Validation of the status of pods."""

import pytest

from tests.support.field_rules import changed, update_errors
from tests.support.valid_pods import CONTAINER, POD

REQUESTS = {"example.com/a": "1"}
CLAIMS = {
    "resourceClaims": [{"name": "d", "resourceClaimName": "x"}],
    "containers.0.resources": {
        "requests": REQUESTS,
        "limits": REQUESTS,
        "claims": [{"name": "d"}, {"name": "d", "request": "r"}],
    },
}
WINDOWS = {"os": {"name": "windows"}}
RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
FOR_ALL = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
MAPPING = {"containerName": "c", "resourceName": "example.com/a", "requestName": "r"}


def status_errors(new, spec=None, old=None):
    """Return the errors of a status, without its path."""
    pod = changed(POD, {f"spec.{path}": value for path, value in (spec or {}).items()})
    texts = update_errors("v1", "Pod", {**pod, "status": old or {}}, {**pod, "status": new}, "status")
    return [text.removeprefix("status.") for text in texts]


def ips(*addresses):
    return [{"ip": address} for address in addresses]


def ended(code, name="c"):
    return {"name": name, "state": {"terminated": {"exitCode": code}}}


def restart_errors(code, **spec):
    """Return the errors of a container that runs again after an exit code."""
    again = [{"name": "c", "state": {"running": {}}}]
    return status_errors({"containerStatuses": again}, spec, {"containerStatuses": [ended(code)]})


def user(**linux):
    return {"containerStatuses": [{"name": "c", "user": {"linux": linux}}]}


def allocated(name="example.com/a", *resources):
    return {
        "containerStatuses": [
            {"name": "c", "allocatedResourcesStatus": [{"name": name, "resources": [*resources]}]}
        ]
    }


def extended(*mappings, **fields):
    return {
        "extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [*mappings], **fields}
    }


def rules(*restart_rules):
    return {"containers.0.restartPolicy": "Never", "containers.0.restartPolicyRules": [*restart_rules]}


STATUSES = [
    pytest.param(({},), [], id="nothing"),
    pytest.param(({"conditions": [{"type": "Ready"}, {"type": "example.com/a", "observedGeneration": 1}]},),
        [], id="conditions"),
    pytest.param(({"conditions": [{"type": "a b", "observedGeneration": -1}]},),
        ["conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
         ("conditions[0].Type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', "
          "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid conditions"),
    pytest.param(({"observedGeneration": -1},),
        ["observedGeneration: Invalid value: -1: must be a non-negative integer"], id="negative generation"),
    pytest.param(({"nominatedNodeName": "n"},), [], id="nomination"),
    pytest.param(({"nominatedNodeName": "N"},),
        [('nominatedNodeName: Invalid value: "N": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid nomination"),
    pytest.param(({"nominatedNodeName": "n"}, {"nodeName": "m"}),
        ["nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"],
        id="nomination of a pod on a node"),
    pytest.param(({"qosClass": "Burstable"}, None, {"qosClass": "BestEffort"}),
        ['qosClass: Invalid value: "Burstable": field is immutable'], id="quality of service"),
    pytest.param(({"podIPs": ips("10.0.0.1", "::1"), "hostIP": "10.0.0.2", "hostIPs": ips("10.0.0.2")},),
        [], id="addresses"),
    pytest.param(({"podIPs": ips("10.0.0.1", "10.0.0.2")},),
        [('podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for '
          "each IP family")], id="two addresses of one family"),
    pytest.param(({"podIPs": ips("10.0.0.1", "::1", "10.0.0.2")},),
        [('podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"::1"},{"IP":"10.0.0.2"}]: may specify no more than '
          "one IP for each IP family")], id="three addresses"),
    pytest.param(({"podIPs": ips("a")},),
        ['podIPs[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
        id="invalid address"),
    pytest.param(({"podIPs": ips("")},),
        ['podIPs[0]: Invalid value: "": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
         'podIPs: Invalid value: [{"IP":""}]: podIP and podIPs must either both be set or both be unset'],
        id="empty address"),
    pytest.param(({"podIPs": ips("10.0.0.1", "a")},),
        ['podIPs[1]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
         "podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: a",
         ('podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"a"}]: may specify no more than one IP for each IP '
          "family")], id="invalid second address"),
    pytest.param(({"podIPs": ips("010.0.0.1")},),
        ['podIPs[0]: Invalid value: "010.0.0.1": must not have leading 0s'], id="sloppy address"),
    pytest.param(({"podIPs": ips("010.0.0.1")}, None, {"podIPs": ips("010.0.0.1")}), [], id="sloppy address stays"),
    pytest.param(({"hostIP": "10.0.0.1", "hostIPs": ips("10.0.0.2")},),
        ['hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`'], id="other address of the host"),
    pytest.param((user(uid=0, gid=0, supplementalGroups=[1]),), [], id="user"),
    pytest.param((user(uid=2**32 - 1, gid=0),), [], id="largest user"),
    pytest.param((user(uid=-1, gid=-1, supplementalGroups=[-1]),),
        ["containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 4294967295, inclusive",
         "containerStatuses[0].user.linux.gid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
         ("containerStatuses[0].user.linux.supplementalGroups[0]: Invalid value: -1: must be between 0 and "
          "2147483647, inclusive")], id="negative user"),
    pytest.param((user(uid=1, gid=1), WINDOWS),
        ["containerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod"], id="Linux user of Windows"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), STATUSES)
def test_status_is_validated(change, expected):
    assert status_errors(*change) == expected


RESTARTS = [
    pytest.param((0, {}), [], id="pod always restarts"),
    pytest.param((1, {"restartPolicy": "OnFailure"}), [], id="pod restarts on failure"),
    pytest.param((0, {"restartPolicy": "OnFailure"}),
        ["containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
        id="pod restarts on failure only"),
    pytest.param((1, {"restartPolicy": "Never"}),
        ["containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
        id="pod never restarts"),
    pytest.param((1, {"containers.0.restartPolicy": "Never"}),
        ["containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
        id="container never restarts"),
    pytest.param((42, rules(RULE)), [], id="rule restarts the container"),
    pytest.param((41, rules(RULE)),
        ["containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
        id="rule of another code"),
    pytest.param((42, rules(FOR_ALL)), [], id="rule restarts all containers"),
    pytest.param((41, rules(FOR_ALL)), [], id="rule may restart all containers"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), RESTARTS)
def test_only_containers_that_restart_leave_their_end(change, expected):
    assert restart_errors(change[0], **change[1]) == expected


CLAIM_STATUSES = [
    pytest.param({"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "x"}]}, [], id="claim"),
    pytest.param({"resourceClaimStatuses": [{"name": "e"}]},
        [('resourceClaimStatuses[0].name: Invalid value: "e": must match the name of an entry in '
          "`spec.resourceClaims`")], id="unknown claim"),
    pytest.param({"resourceClaimStatuses": [{"name": "d"}, {"name": "d"}]},
        ['resourceClaimStatuses[1].name: Duplicate value: "d"'], id="claim twice"),
    pytest.param({"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "X"}]},
        [('resourceClaimStatuses[0].resourceClaimName: Invalid value: "X": a lowercase RFC 1123 subdomain must '
          "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid name of a claim"),
    pytest.param(extended(MAPPING), [], id="extended resource"),
    pytest.param(extended(),
        ["extendedResourceClaimStatus.requestMappings: Required value: at least one request mapping is required"],
        id="extended resource without mappings"),
    pytest.param(extended(MAPPING, resourceClaimName=""),
        ["extendedResourceClaimStatus.resourceClaimName: Required value"], id="extended resource without claim"),
    pytest.param(extended(MAPPING, MAPPING),
        ['extendedResourceClaimStatus.requestMappings[1].containerName: Duplicate value: "c"',
         'extendedResourceClaimStatus.requestMappings[1].resourceName: Duplicate value: "example.com/a"',
         'extendedResourceClaimStatus.requestMappings[1].requestName: Duplicate value: "r"'],
        id="extended resource twice"),
    pytest.param(extended({**MAPPING, "containerName": "d"}),
        [('extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "d": must match the '
          "name of an entry in spec.initContainers.name or spec.containers.name")],
        id="extended resource of an unknown container"),
    pytest.param(extended({**MAPPING, "resourceName": "example.com/b"}),
        [('extendedResourceClaimStatus.requestMappings[0].resourceName: Invalid value: "example.com/b": must '
          "match the extended resource name of an entry in spec.initContainers.resources.requests or "
          "spec.containers.resources.requests")], id="extended resource that is not requested"),
    pytest.param(extended({**MAPPING, "requestName": "R"}),
        [('extendedResourceClaimStatus.requestName: Invalid value: "R": a lowercase RFC 1123 label must consist '
          "of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character "
          "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="extended resource of an invalid request"),
    pytest.param(allocated("example.com/a", {"resourceID": "1", "health": "Healthy"}), [], id="allocated resource"),
    pytest.param(allocated("claim:d"), [], id="allocated claim"),
    pytest.param(allocated("claim:d/r"), [], id="allocated request of a claim"),
    pytest.param(allocated("example.com/b"),
        [('containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "example.com/b": must match '
          "one of the container's resource requests")], id="unknown allocated resource"),
    pytest.param(allocated("claim:e"),
        [('containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "claim:e": must match one of '
          "the container's resource claims as 'claim:<claimName>/<requestName>' when "
          "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty")], id="unknown allocated claim"),
    pytest.param(allocated("example.com/a", {"resourceID": "1", "health": "Ill"}),
        [('containerStatuses[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: "Ill": '
          'supported values: "Healthy", "Unhealthy", "Unknown"')], id="unknown health"),
    pytest.param(allocated("example.com/a", {"resourceID": "1", "health": "Healthy"}, {"resourceID": "1", "health": "Unknown"}),
        ['containerStatuses[0].allocatedResourcesStatus[0].resources[1].resourceID: Duplicate value: "1"'],
        id="resource twice"),
    pytest.param(allocated("example.com/a", {"resourceID": "1", "health": "Healthy", "message": ""}),
        [("containerStatuses[0].allocatedResourcesStatus[0].resources[0].message: Required value: must be "
          "non-empty if specified")], id="empty message"),
    pytest.param(allocated("example.com/a", {"resourceID": "1", "health": "Healthy", "message": "m" * 1024}),
        [], id="message of 1024 characters"),
    pytest.param(allocated("example.com/a", {"resourceID": "1", "health": "Healthy", "message": "m" * 1025}),
        [("containerStatuses[0].allocatedResourcesStatus[0].resources[0].message: Too long: may not be more "
          "than 1024 bytes")], id="message of 1025 characters"),
    pytest.param({"ephemeralContainerStatuses": [{"name": "e", "allocatedResourcesStatus": [{"name": "a"}]}]},
        [("ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in "
          "container status")], id="resource of an ephemeral container"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLAIM_STATUSES)
def test_statuses_of_claims_are_validated(change, expected):
    assert status_errors(change, CLAIMS) == expected


@pytest.mark.parametrize(("policy", "count"), [("Always", 0), ("Never", 1)])
def test_only_sidecars_leave_their_end(policy, count):
    spec = {"initContainers": [{**CONTAINER, "name": "i", "restartPolicy": policy}]}
    again = {"initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}
    assert len(status_errors(again, spec, {"initContainerStatuses": [ended(1, "i")]})) == count
