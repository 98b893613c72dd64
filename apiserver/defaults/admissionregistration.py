"""Defaults of admissionregistration.k8s.io: webhooks, admission policies and their bindings."""

from typing import Final

from apiserver.defaults.table import of

_MATCH: Final = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_WEBHOOK: Final = {"failurePolicy": "Fail", **_MATCH, "timeoutSeconds": 10}

DEFAULTS: Final = of(
    "io.k8s.api.admissionregistration.v1",
    {
        "ValidatingWebhook": _WEBHOOK,
        "MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
        "ServiceReference": {"port": 443},
        "RuleWithOperations": {"scope": "*"},
        "ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
        "MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
        "MatchResources": _MATCH,
        "NamedRuleWithOperations": {"scope": "*"},
    },
)
