"""Admission of exec, attach, port-forward and proxy: a CONNECT operation with the options as object."""

import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: commands}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CONNECT], resources: [pods/exec, pods/proxy]}
  validations:
    - expression: "object.kind != 'PodExecOptions' || !('rm' in object.command) || object.?stdin.orValue(false)"
      message: rm is not allowed
    - expression: "object.kind != 'PodProxyOptions' || object.path != '/secret'"
      messageExpression: "request.name + ' has no ' + object.path"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: commands}
spec: {policyName: commands, validationActions: [Deny]}
---
apiVersion: v1
kind: Pod
metadata: {name: admitted}
spec: {containers: [{name: c, image: app, ports: [{containerPort: 80}]}]}
"""


def test_policy_receives_connect_options(cluster):
    cluster.apply(POLICY)
    cluster.wait("Pod", "admitted", "Ready")
    pods = official.CoreV1Api(cluster.kubernetes())

    def run(*command, **options):
        call = pods.connect_get_namespaced_pod_exec
        return stream(call, "admitted", "default", command=list(command), stdout=True, **options)

    def is_refused():
        try:
            run("rm", "x")
        except official.ApiException as error:
            return (
                "denied request: rm is not allowed" in str(error)
                or "403" in str(error)
                or "422" in str(error)
            )
        return False

    until(is_refused, "the policy")
    assert run("echo", "allowed") == "allowed\n"
    assert "admitted" in pods.connect_get_namespaced_pod_proxy_with_path("admitted", "default", "open")
    with pytest.raises(official.ApiException, match="admitted has no /secret"):
        pods.connect_get_namespaced_pod_proxy_with_path("admitted", "default", "secret")
