"""A valid pod with all fields that validation requires."""

from typing import Any, Final

CONTAINER: Final[dict[str, Any]] = {
    "name": "c",
    "image": "a",
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePolicy": "File",
}
SPEC: Final[dict[str, Any]] = {
    "containers": [CONTAINER],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 30,
    "volumes": [
        {"name": "empty", "emptyDir": {}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "other", "persistentVolumeClaim": {"claimName": "b"}},
    ],
}
POD: Final[dict[str, Any]] = {"metadata": {"name": "a", "namespace": "ns"}, "spec": SPEC}
