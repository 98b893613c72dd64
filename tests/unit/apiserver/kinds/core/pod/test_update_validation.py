"""Validation of changed pods: what an update may change, and which invalid fields of the old pod it may keep."""

import pytest

from tests.support.field_rules import changed, update_errors
from tests.support.valid_pods import CONTAINER, POD

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GATED = {"schedulingGates": [{"name": "g"}]}
LINUX = {"nodeSelector": {"os": "linux"}}
APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"
MIRROR = "kubernetes.io/config.mirror"
COST = "controller.kubernetes.io/pod-deletion-cost"
BAD = {"matchLabels": {"a": "b c"}}


def pod(fields):
    return changed(POD, {f"spec.{path}": value for path, value in fields.items()})


def errors_of(old, new):
    return update_errors("v1", "Pod", pod(old), pod(new))


def first_errors(old, new):
    """Return the errors without the differences that follow them."""
    return [text.partition("\n")[0] for text in errors_of(old, new)]


def kept_errors(kept):
    """Return the errors of an update that keeps fields and adds a label."""
    old = pod(kept)
    return update_errors("v1", "Pod", old, changed(old, {"metadata.labels": {"a": "b"}}))


def annotation_errors(old, new):
    return update_errors("v1", "Pod", *(changed(POD, {"metadata.annotations": each}) for each in (old, new)))


def ephemeral_errors(old, new, **annotations):
    old_pod, new_pod = (
        changed(pod({"ephemeralContainers": each}), {"metadata.annotations": annotations})
        for each in (old, new)
    )
    return [
        text.partition("\n")[0]
        for text in update_errors("v1", "Pod", old_pod, new_pod, "ephemeralcontainers")
    ]


def affinity(*node_terms):
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*node_terms]}}}}


def term(*keys, operator="Exists"):
    return {"matchExpressions": [{"key": key, "operator": operator} for key in keys]}


def toleration(key, **fields):
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **fields}


def debugger(**fields):
    return {**CONTAINER, "name": "e", **fields}


CHANGES = [
    pytest.param({}, {}, [], id="nothing"),
    pytest.param({}, {"containers.0.image": "b"}, [], id="image"),
    pytest.param({}, {"containers.0.image": ""}, ["spec.containers[0].image: Required value"], id="no image"),
    pytest.param({}, {"containers.0.image": " b"},
        ['spec.containers[0].image: Invalid value: " b": must not have leading or trailing whitespace'],
        id="padded image"),
    pytest.param({}, {"containers.0.command": ["b"]},
        [("spec: Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
          "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to "
          "1 if it was previously negative)")], id="command"),
    pytest.param({}, {"containers": [CONTAINER, {**CONTAINER, "name": "d"}]},
        ["spec.containers: Forbidden: pod updates may not add or remove containers"], id="second container"),
    pytest.param({}, {"initContainers": [{**CONTAINER, "name": "d"}]},
        ["spec.initContainers: Forbidden: pod updates may not add or remove containers"], id="init container"),
    pytest.param({"initContainers": [{**CONTAINER, "name": "d"}]}, {"initContainers": [{**CONTAINER, "name": "d", "image": "b"}]},
        [], id="image of an init container"),
    pytest.param({}, {"nodeName": "n"},
        [("spec: Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
          "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to "
          "1 if it was previously negative)")], id="node"),
    pytest.param({}, {"activeDeadlineSeconds": 10}, [], id="first deadline"),
    pytest.param({}, {"activeDeadlineSeconds": 0},
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        id="first deadline of zero"),
    pytest.param({"activeDeadlineSeconds": 10}, {"activeDeadlineSeconds": 9}, [], id="earlier deadline"),
    pytest.param({"activeDeadlineSeconds": 10}, {"activeDeadlineSeconds": 11},
        ["spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value"],
        id="later deadline"),
    pytest.param({"activeDeadlineSeconds": 10}, {"activeDeadlineSeconds": -1},
        ["spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive",
         "spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
        id="negative deadline"),
    pytest.param({"activeDeadlineSeconds": 10}, {},
        ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
        id="no deadline"),
    pytest.param({}, {"terminationGracePeriodSeconds": 1},
        [("spec: Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
          "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to "
          "1 if it was previously negative)")], id="shorter grace period"),
    pytest.param({"tolerations": [toleration("a")]}, {"tolerations": [toleration("b"), toleration("a")]},
        [], id="new toleration"),
    pytest.param({"tolerations": [toleration("a")]}, {"tolerations": [toleration("a", tolerationSeconds=1)]},
        [], id="seconds of a toleration"),
    pytest.param({"tolerations": [toleration("a")]}, {"tolerations": [toleration("b")]},
        ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        id="other toleration"),
    pytest.param({"tolerations": [toleration("a")]}, {},
        ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        id="no tolerations"),
    pytest.param({}, {"tolerations": [{}]},
        [('spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which '
          'means "match all values and all keys"')], id="invalid toleration"),
    pytest.param({}, GATED,
        ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"],
        id="new gate"),
    pytest.param({"schedulingGates": [{"name": "g"}, {"name": "h"}]}, GATED, [], id="gate removed"),
    pytest.param({}, LINUX,
        [("spec: Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
          "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to "
          "1 if it was previously negative)")], id="selector of nodes"),
    pytest.param({}, affinity(term("a")),
        [("spec: Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
          "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to "
          "1 if it was previously negative)")], id="affinity"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_specs_are_validated(old, new, expected):
    assert first_errors(old, new) == expected


GATED_CHANGES = [
    pytest.param({}, LINUX, [], id="selector is added"),
    pytest.param(LINUX, {"nodeSelector": {"os": "linux", "a": "b"}}, [], id="selector is narrowed"),
    pytest.param(LINUX, {"nodeSelector": {"os": "windows"}},
        [('spec.nodeSelector: Invalid value: {"os":"windows"}: only additions to spec.nodeSelector are allowed '
          "(no mutations or deletions)")], id="selector changes"),
    pytest.param(LINUX, {},
        [("spec.nodeSelector: Invalid value: null: only additions to spec.nodeSelector are allowed (no "
          "mutations or deletions)")], id="selector is removed"),
    pytest.param({}, affinity(term("a")), [], id="affinity is added"),
    pytest.param(affinity(term("a")), affinity(term("a"), term("b")),
        [("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid "
          "value: "
          '[{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null},{"MatchExpressions":[{"Key":"b","Operator":"Exists","Values":null}],"MatchFields":null}]: '
          "no additions/deletions to non-empty NodeSelectorTerms list are allowed")], id="term is added"),
    pytest.param(affinity(term("a")), {},
        [("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid "
          "value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed")],
        id="terms are removed"),
    pytest.param(affinity(term("a")), affinity(term("a", "b")), [], id="requirement is added"),
    pytest.param(affinity({}), affinity(term("b")),
        [("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: "
          "Invalid value: "
          '{"MatchExpressions":[{"Key":"b","Operator":"Exists","Values":null}],"MatchFields":null}: only '
          "additions are allowed (no mutations or deletions)")], id="requirement is added to a term without any"),
    pytest.param(affinity(term("a", "b")), affinity(term("a")),
        [("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: "
          "Invalid value: "
          '{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null}: only '
          "additions are allowed (no mutations or deletions)")], id="requirement is removed"),
    pytest.param(affinity(term("a")), affinity(term("a", operator="DoesNotExist")),
        [("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: "
          "Invalid value: "
          '{"MatchExpressions":[{"Key":"a","Operator":"DoesNotExist","Values":null}],"MatchFields":null}: only '
          "additions are allowed (no mutations or deletions)")], id="requirement changes"),
    pytest.param({}, {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term("a")}]}}},
        [], id="preference changes"),
    pytest.param({}, {"affinity": {"podAffinity": {}}},
        [("spec: Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
          "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to "
          "1 if it was previously negative)")], id="other affinity changes"),
    pytest.param({}, {**LINUX, "schedulingGates": []}, [], id="directive changes with the last gate"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), GATED_CHANGES)
def test_scheduling_directives_change_while_there_are_gates(old, new, expected):
    assert first_errors({**GATED, **old}, {**GATED, **new}) == expected


ANNOTATIONS = [
    pytest.param({"a": "b"}, {"a": "c"}, [], id="annotation"),
    pytest.param({}, {APPARMOR: "unconfined"},
        [("metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not add "
          "AppArmor annotations")], id="AppArmor is added"),
    pytest.param({APPARMOR: "unconfined"}, {APPARMOR: "runtime/default"},
        [("metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not remove or "
          "update AppArmor annotations")], id="AppArmor changes"),
    pytest.param({APPARMOR: "unconfined"}, {},
        [("metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not remove or "
          "update AppArmor annotations")], id="AppArmor is removed"),
    pytest.param({MIRROR: "a"}, {},
        [("metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod "
          "annotation")], id="mirror is removed"),
    pytest.param({}, {MIRROR: "a"},
        [('metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "a": must set spec.nodeName if '
          "mirror pod annotation is set"),
         "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"],
        id="mirror is added"),
    pytest.param({COST: "1"}, {COST: "a"},
        [('metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "a": must be a '
          "32bit integer")], id="cost of deletion becomes invalid"),
    pytest.param({COST: "a"}, {COST: "b"}, [], id="cost of deletion stays invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), ANNOTATIONS)
def test_changed_annotations_are_validated(old, new, expected):
    assert annotation_errors(old, new) == expected


EPHEMERAL = [
    pytest.param([], [debugger()], [], id="container"),
    pytest.param([], [debugger(targetContainerName="c")], [], id="container for another one"),
    pytest.param([], [debugger(targetContainerName="d")],
        ['spec.ephemeralContainers[0].targetContainerName: Not found: "d"'], id="container for an unknown one"),
    pytest.param([], [debugger(targetContainerName="e")],
        ['spec.ephemeralContainers[0].targetContainerName: Not found: "e"'], id="container for itself"),
    pytest.param([], [debugger(name="c")],
        ['spec.ephemeralContainers[0].name: Duplicate value: "c"'], id="name of a container"),
    pytest.param([], [debugger(name="")], ["spec.ephemeralContainers[0].name: Required value"], id="no name"),
    pytest.param([], [debugger(), debugger()],
        ['spec.ephemeralContainers[1].name: Duplicate value: "e"'], id="name twice"),
    pytest.param([], [debugger(image="")], ["spec.ephemeralContainers[0].image: Required value"], id="no image"),
    pytest.param([], [debugger(image="a ")],
        ['spec.ephemeralContainers[0].image: Invalid value: "a ": must not have leading or trailing whitespace'],
        id="padded image"),
    pytest.param([], [debugger(ports=[{"containerPort": 1, "protocol": "TCP"}], resources={"limits": {"cpu": "1"}}, resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}], restartPolicy="Always", restartPolicyRules=[], livenessProbe={}, readinessProbe={}, startupProbe={}, lifecycle={})],
        ["spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].resizePolicy: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].restartPolicy: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].restartPolicyRules: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].readinessProbe: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].startupProbe: Forbidden: cannot be set for an Ephemeral Container",
         "spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container"],
        id="fields of other containers"),
    pytest.param([], [debugger(resources={})], [], id="empty resources"),
    pytest.param([], [debugger(volumeMounts=[{"name": "empty", "mountPath": "/a"}])], [], id="mount"),
    pytest.param([], [debugger(volumeMounts=[{"name": "empty", "mountPath": "/a", "subPath": "b"}])],
        [("spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral "
          "Container")], id="mount of a part"),
    pytest.param([], [debugger(volumeMounts=[{"name": "empty", "mountPath": "/a", "subPathExpr": "b"}])],
        [("spec.ephemeralContainers[0].volumeMounts[0].subPathExpr: Forbidden: cannot be set for an Ephemeral "
          "Container")], id="mount of a computed part"),
    pytest.param([debugger()], [debugger(), debugger(name="f")], [], id="container stays"),
    pytest.param([debugger()], [debugger(image="b")],
        ['spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be changed'],
        id="container changes"),
    pytest.param([debugger()], [],
        ['spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed'],
        id="container is removed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), EPHEMERAL)
def test_ephemeral_containers_are_validated(old, new, expected):
    assert ephemeral_errors(old, new) == expected


KEPT = [
    pytest.param({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "a", "labelSelector": BAD}]}}},
        [("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchLabels: "
          'Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
          "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")],
        id="values of pod affinity"),
    pytest.param({"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}}}]}}},
        [], id="values of preferred pod affinity"),
    pytest.param(affinity({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}),
        [], id="values of node affinity"),
    pytest.param({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": BAD}]},
        [], id="selector of a spread constraint"),
    pytest.param({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"b": "c"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, "matchLabelKeys": ["b"]}]},
        [('spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "b": exists in both '
          "matchLabelKeys and labelSelector")], id="keys of a spread constraint"),
    pytest.param({"containers.0.resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "3Mi"}}},
        [], id="part of a huge page"),
    pytest.param({"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "../t", "expirationSeconds": 600}}]}}]},
        [], id="path of a token"),
    pytest.param({"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.a", "value": "1"}]}},
        [], id="sysctl of the host"),
    pytest.param({"securityContext": {"seLinuxChangePolicy": "MountOption"}},
        [], id="SELinux labels by mount option"),
    pytest.param({"hostUsers": False, "hostNetwork": True}, [], id="own users in the host's network"),
    pytest.param({"hostUsers": False, "containers.0.volumeDevices": [{"name": "claim", "devicePath": "/a"}]},
        [], id="own users with a device"),
    pytest.param({"initContainers": [{**CONTAINER, "name": "i", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]},
        [], id="resize that restarts an init container"),
    pytest.param({"tolerations": [{"key": "a", "operator": "Gt", "value": "-1"}]}, [], id="comparison of a taint"),
    pytest.param({"tolerations": [{"key": "a", "operator": "Lt"}]},
        ['spec.tolerations[0].value: Invalid value: "": must be non-empty',
         'spec.tolerations[0].value: Invalid value: "": strconv.ParseInt: parsing "": invalid syntax'],
        id="comparison of a taint with nothing"),
    pytest.param({"tolerations": [{"key": "a", "operator": "Lt", "value": "01"}]},
        ['spec.tolerations[0].value: Invalid value: "01": must be a valid decimal integer in canonical form'],
        id="comparison of a taint with a leading zero"),
    pytest.param({"tolerations": [{"key": "a", "operator": "Lt", "value": "9223372036854775808"}]},
        [('spec.tolerations[0].value: Invalid value: "9223372036854775808": strconv.ParseInt: parsing '
          '"9223372036854775808": value out of range')], id="comparison of a taint with a large number"),
    pytest.param({"hostUsers": False, "hostPID": True},
        ["spec.HostPID: Forbidden: when `hostUsers` is false"], id="own users in the host's processes"),
    pytest.param({"hostname": "A"},
        [('spec.hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="invalid host name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), KEPT)
def test_invalid_fields_of_the_old_pod_are_kept(change, expected):
    assert kept_errors(change) == expected
