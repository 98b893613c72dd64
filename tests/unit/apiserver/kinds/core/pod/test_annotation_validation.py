"""Validation of a pod's annotations, alone and against the fields that replaced them."""

import pytest

from tests.support.field_rules import changed, create_errors
from tests.support.valid_pods import POD

POD_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/c"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
COST = "controller.kubernetes.io/pod-deletion-cost"
MIRROR = "kubernetes.io/config.mirror"
FILE_A = {"type": "Localhost", "localhostProfile": "a"}


def errors_of(annotations, spec):
    fields = {f"spec.{path}": value for path, value in spec.items()}
    return create_errors("v1", "Pod", changed(POD, {"metadata.annotations": annotations, **fields}))


ANNOTATIONS = [
    pytest.param(({POD_SECCOMP: "runtime/default"}, {}), [], id="seccomp of the runtime"),
    pytest.param(({SECCOMP: "docker/default"}, {}), [], id="seccomp of Docker"),
    pytest.param(({POD_SECCOMP: "a"}, {}),
        [('metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "a": must be a valid '
          "seccomp profile")], id="unknown seccomp"),
    pytest.param(({SECCOMP: "localhost//a"}, {}),
        [('metadata.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: "/a": must be '
          "a relative path")], id="seccomp of an absolute file"),
    pytest.param(({SECCOMP: "localhost/../a"}, {}),
        [('metadata.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: "../a": must '
          "not contain '..'")], id="seccomp of a file above"),
    pytest.param(({POD_SECCOMP: "docker/default"}, {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
        [], id="seccomp as in the field"),
    pytest.param(({POD_SECCOMP: "unconfined"}, {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
        ["spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"],
        id="seccomp of another type than the field"),
    pytest.param(({SECCOMP: "unconfined"}, {"containers.0.securityContext": {"seccompProfile": FILE_A}}),
        [("spec.containers[0].securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and "
          "field must match")], id="seccomp of a container of another type than the field"),
    pytest.param(({SECCOMP: "localhost/b"}, {"containers.0.securityContext": {"seccompProfile": FILE_A}}),
        [("spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in "
          "annotation and field must match")], id="seccomp of another file than the field"),
    pytest.param(({SECCOMP: "localhost/a"}, {"containers.0.securityContext": {"seccompProfile": FILE_A}}),
        [], id="seccomp of the file in the field"),
    pytest.param(({f"{APPARMOR}c": "runtime/default"}, {}), [], id="AppArmor of the runtime"),
    pytest.param(({f"{APPARMOR}d": "unconfined"}, {}),
        [('metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": '
          "container not found")], id="AppArmor of no container"),
    pytest.param(({f"{APPARMOR}c": "a"}, {}),
        [('metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: "a": invalid '
          'AppArmor profile name: "a"')], id="unknown AppArmor"),
    pytest.param(({f"{APPARMOR}c": ""}, {}), [], id="empty AppArmor"),
    pytest.param(({f"{APPARMOR}c": "localhost/a"}, {"securityContext": {"appArmorProfile": FILE_A}}),
        [], id="AppArmor as in the field of the pod"),
    pytest.param(({f"{APPARMOR}c": "unconfined"}, {"containers.0.securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}),
        [("spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and "
          "field must match")], id="AppArmor of another type than the field"),
    pytest.param(({f"{APPARMOR}c": "localhost/b"}, {"containers.0.securityContext": {"appArmorProfile": FILE_A}}),
        [("spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in "
          "annotation and field must match")], id="AppArmor of another profile than the field"),
    pytest.param(({f"{APPARMOR}c": "unconfined"}, {"os": {"name": "windows"}}), [], id="AppArmor of Windows"),
    pytest.param(({MIRROR: "a"}, {}),
        [('metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "a": must set spec.nodeName if '
          "mirror pod annotation is set")], id="mirror of a pod without node"),
    pytest.param(({MIRROR: "a"}, {"nodeName": "n"}), [], id="mirror of a pod on a node"),
    pytest.param(({TOLERATIONS: "[{"}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": unexpected end of '
          "JSON input")], id="tolerations that are no JSON"),
    pytest.param(({TOLERATIONS: '[{"key": "a b", "operator": "Exists"}]'}, {}),
        [('metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].key: Invalid value: "a b": name '
          "part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="tolerations that are invalid"),
    pytest.param(({TOLERATIONS: '[{"operator": "Exists"}]'}, {}), [], id="tolerations that are valid"),
    pytest.param(({TOLERATIONS: '{"key": "a"}'}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot '
          "unmarshal object into Go value of type []core.Toleration")], id="tolerations that are an object"),
    pytest.param(({TOLERATIONS: "[1]"}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot '
          "unmarshal number into Go value of type core.Toleration")], id="tolerations that are a list of numbers"),
    pytest.param(({TOLERATIONS: "null"}, {}), [], id="tolerations that are null"),
    pytest.param(({TOLERATIONS: '[{"key": 1}]'}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot '
          "unmarshal number into Go struct field Toleration.Key of type string")], id="tolerations of a wrong type"),
    pytest.param(({TOLERATIONS: '[{"OPERATOR": true}]'}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot '
          "unmarshal bool into Go struct field Toleration.Operator of type core.TolerationOperator")],
        id="tolerations with an operator that is true"),
    pytest.param(({TOLERATIONS: '[{"tolerationSeconds": "1"}]'}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot '
          "unmarshal string into Go struct field Toleration.TolerationSeconds of type int64")],
        id="tolerations with seconds as text"),
    pytest.param(({TOLERATIONS: '[{"tolerationSeconds": 1.5}]'}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot '
          "unmarshal number 1.5 into Go struct field Toleration.TolerationSeconds of type int64")],
        id="tolerations with a fraction of seconds"),
    pytest.param(({TOLERATIONS: '[{"tolerationSeconds": 9223372036854775808}]'}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": json: cannot '
          "unmarshal number 9223372036854775808 into Go struct field Toleration.TolerationSeconds of type int64")],
        id="tolerations with too many seconds"),
    pytest.param(({TOLERATIONS: '[{"key": null, "operator": "Exists", "other": 1}, null]'}, {}),
        [('metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[1].operator: Invalid value: "": '
          'operator must be Exists when `key` is empty, which means "match all values and all keys"')],
        id="tolerations of nulls"),
    pytest.param(({TOLERATIONS: "[] x"}, {}),
        [('metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": invalid character '
          "'x' after top-level value")], id="tolerations after which there is text"),
    pytest.param(({COST: "2147483647"}, {}), [], id="highest cost of deletion"),
    pytest.param(({COST: "2147483648"}, {}),
        [('metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "2147483648": must '
          "be a 32bit integer")], id="cost of deletion too high"),
    pytest.param(({COST: "-1"}, {}), [], id="negative cost of deletion"),
    pytest.param(({COST: "+1"}, {}),
        [('metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a '
          "32bit integer")], id="cost of deletion with a plus sign"),
    pytest.param(({COST: "01"}, {}),
        [('metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "01": must be a '
          "32bit integer")], id="cost of deletion with a leading zero"),
    pytest.param(({COST: ""}, {}),
        [('metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "": must be a 32bit '
          "integer")], id="empty cost of deletion"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), ANNOTATIONS)
def test_annotations_are_validated(change, expected):
    assert errors_of(*change) == expected
