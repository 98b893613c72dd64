"""Valid objects with pod templates, with all fields that validation requires."""

from typing import Any, Final

from tests.support.valid_pods import SPEC

LABELS: Final = {"app": "a"}
METADATA: Final = {"name": "a", "namespace": "ns"}
TEMPLATE: Final[dict[str, Any]] = {"metadata": {"labels": LABELS}, "spec": SPEC}

REPLICA_SET: Final[dict[str, Any]] = {
    "metadata": METADATA,
    "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": TEMPLATE},
}
DEPLOYMENT: Final[dict[str, Any]] = {
    "metadata": METADATA,
    "spec": {
        **REPLICA_SET["spec"],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
    },
}
DAEMON_SET: Final[dict[str, Any]] = {
    "metadata": METADATA,
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": TEMPLATE,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    },
}
STATEFUL_SET: Final[dict[str, Any]] = {
    "metadata": METADATA,
    "spec": {
        **REPLICA_SET["spec"],
        "podManagementPolicy": "OrderedReady",
        "serviceName": "a",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    },
}
GENERATED_LABELS: Final = {
    "batch.kubernetes.io/controller-uid": "u",
    "batch.kubernetes.io/job-name": "a",
    "controller-uid": "u",
    "job-name": "a",
}
JOB: Final[dict[str, Any]] = {
    "metadata": {**METADATA, "uid": "u"},
    "spec": {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
        "template": {"metadata": {"labels": GENERATED_LABELS}, "spec": {**SPEC, "restartPolicy": "Never"}},
        "podReplacementPolicy": "TerminatingOrFailed",
    },
}
CRON_JOB: Final[dict[str, Any]] = {
    "metadata": METADATA,
    "spec": {
        "schedule": "* * * * *",
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "jobTemplate": {"spec": {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}}},
    },
}
