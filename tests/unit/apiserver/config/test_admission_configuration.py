from argparse import ArgumentTypeError

import pytest

from mockube.apiserver.config.admission_configuration import admission_configuration

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"


def configured(name, text):
    return f"{HEAD}plugins:\n- name: {name}\n  configuration: {text}\n"


LIMITS = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration"
PODS = "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration"
QUOTAS = "apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration"
HOOK = """
current-context: c
contexts: [{name: c, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "https://images.example.com/policy"}}]
"""
WRONG = {
    "no object": ("[]", "does not contain an object"),
    "another kind": ("kind: Pod\napiVersion: v1", "it is not an AdmissionConfiguration"),
    "an unknown field": (f"{HEAD}plugin: []", 'unknown field "plugin" in the file'),
    "no list": (f"{HEAD}plugins: 1", "plugins is not a list of objects"),
    "an unsupported configuration": (
        configured("ValidatingAdmissionWebhook", "{}"),
        "the configuration of ValidatingAdmissionWebhook is not supported",
    ),
    "another configuration of quotas": (
        configured("ResourceQuota", "{kind: Configuration, apiVersion: v1}"),
        "expected a ResourceQuotaConfiguration of apiserver.config.k8s.io, not v1, Kind=Configuration",
    ),
    "a limit of nothing": (
        configured("ResourceQuota", f"{{{QUOTAS}, limitedResources: [{{matchContains: [a]}}]}}"),
        "limitedResources[0].resource: Required value",
    ),
    "a scope": (
        configured(
            "ResourceQuota", f"{{{QUOTAS}, limitedResources: [{{resource: pods, matchScopes: [{{x: 1}}]}}]}}"
        ),
        'unknown field "x" in limitedResources[0].matchScopes[0]',
    ),
    "no file": (f"{HEAD}plugins:\n- {{name: PodSecurity, path: lacking.yaml}}", "No such file"),
    "no limits": (
        configured("EventRateLimit", f"{{{LIMITS}}}"),
        "limits: Invalid value: null: must not be empty",
    ),
    "a type of limit": (
        configured("EventRateLimit", f"{{{LIMITS}, limits: [{{type: x, qps: 1, burst: 1}}]}}"),
        'limits[0].type: Unsupported value: "x"',
    ),
    "a burst": (
        configured("EventRateLimit", f"{{{LIMITS}, limits: [{{type: User, qps: 1, burst: 0}}]}}"),
        "limits[0].burst: Invalid value: 0: must be positive",
    ),
    "no kubeconfig": (configured("ImagePolicyWebhook", "{imagePolicy: {}}"), "ImagePolicyWebhook: "),
    "a time of images": (
        configured("ImagePolicyWebhook", "{imagePolicy: {allowTTL: 3600}}"),
        "ImagePolicyWebhook: valid value is between 1s and 30m0s, got 1h0m0s",
    ),
    "a pause between reviews of images": (
        configured("ImagePolicyWebhook", "{imagePolicy: {retryBackoff: 400000}}"),
        "valid value is between 1ns and 5m0s, got 6m40s",
    ),
    "a level": (configured("PodSecurity", f"{{{PODS}, defaults: {{enforce: x}}}}"), "defaults: "),
    "a mode": (configured("PodSecurity", f"{{{PODS}, defaults: {{deny: x}}}}"), 'unknown field "deny"'),
    "selectors": (configured("PodNodeSelector", "{podNodeSelectorPluginConfig: []}"), None),
}


@pytest.mark.parametrize(("text", "problem"), WRONG.values(), ids=WRONG)
def test_invalid_admission_configuration_is_reported(tmp_path, text, problem):
    file = tmp_path / "admission.yaml"
    file.write_text(text)
    if problem is None:
        assert not admission_configuration(str(file)).node_selectors
        return
    with pytest.raises(ArgumentTypeError) as raised:
        admission_configuration(str(file))
    assert problem in str(raised.value)


def test_old_form_of_pod_node_selector_configuration_is_read(tmp_path):
    file = tmp_path / "admission.yaml"
    file.write_text("podNodeSelectorPluginConfig: {a: b=c}")
    assert admission_configuration(str(file)).node_selectors == {"a": "b=c"}


def test_image_policy_webhook_times_have_defaults(tmp_path):
    hook = tmp_path / "hook"
    hook.write_text(HOOK)
    for given, wanted in (("", (300, 30, 0.5)), ("allowTTL: -1, denyTTL: 7, retryBackoff: 20", (0, 7, 0.02))):
        file = tmp_path / "admission.yaml"
        file.write_text(
            configured("ImagePolicyWebhook", f"{{imagePolicy: {{kubeConfigFile: {hook}, {given}}}}}")
        )
        read = admission_configuration(str(file)).image_policy
        assert (read.allow_seconds, read.deny_seconds, read.retry_seconds) == wanted
        assert (read.endpoint.url, read.default_allow) == ("https://images.example.com/policy", False)
