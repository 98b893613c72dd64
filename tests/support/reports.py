"""Recordings and changes for tests of reports."""

from mockube.apimachinery.patch.json_difference import difference
from mockube.report.recording import Recording

ADMIN, CONTROLLER = "kubernetes-admin", "system:serviceaccount:kube-system:deployment-controller"
RESOURCES = {
    "Pod": "pods",
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "Secret": "secrets",
    "Service": "services",
}


def recording(**parts):
    return Recording(**{"version": "v1.37.2", "revision": 99, **parts})


API_VERSIONS = {
    **dict.fromkeys(("ConfigMap", "Node", "PersistentVolumeClaim", "Pod", "Secret", "Service"), "v1"),
    **dict.fromkeys(("Deployment", "ReplicaSet"), "apps/v1"),
    "CertificateSigningRequest": "certificates.k8s.io/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Job": "batch/v1",
    "Task": "example.com/v1",
}


def tree_of(kind, name, *, owner=None, namespace="default", status=None, **spec):
    """Return an object, one of the cluster without a namespace; its uid is its name."""
    metadata = {"name": name, "uid": name, **({"namespace": namespace} if namespace else {})}
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": "any", "name": owner, "uid": owner, "controller": True}]
    return {
        "apiVersion": API_VERSIONS[kind],
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        **({} if status is None else {"status": status}),
    }


def changes_to(kind, name, *versions, first=1, users=()):
    """Return the changes that make each version of an object of the one before; each by the next user, or the administrator."""
    changes, before = [], None
    for number, version in enumerate(versions):
        type_ = "DELETED" if version is None else "MODIFIED" if before is not None else "ADDED"
        user = users[number] if number < len(users) else ADMIN
        changes.append(
            {
                "revision": first + number,
                "time": f"2026-01-01T00:00:{first + number:02}.000000Z",
                "type": type_,
                "object": {
                    "kind": kind,
                    "resource": RESOURCES[kind],
                    "namespace": "default",
                    "name": name,
                    "uid": name,
                },
                "author": {"user": user, "manager": "kubectl", "verb": "patch"},
                "patch": difference(before, version),
            }
        )
        before = version
    return changes


def request(name, code, *, user="bob", verb="create", message="", **status):
    """Return a Request that has ended: as the server does, without fields that are empty."""
    spec = {
        "time": "2026-01-01T00:00:00.000000Z",
        "user": user,
        "verb": verb,
        "resource": "pods",
        "uri": "/api/v1/pods",
    }
    status = {"code": code, "seconds": 0.1, "message": message, **status}
    return {"metadata": {"name": name}, "spec": _without_empty(spec), "status": _without_empty(status)}


def _without_empty(fields):
    return {name: value for name, value in fields.items() if value}


def explanation(tree, cause, **fields):
    metadata = tree["metadata"]
    subject = {
        "apiVersion": tree["apiVersion"],
        "kind": tree["kind"],
        **{name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata},
    }
    return {"state": "Explained", "cause": cause, "object": subject, **fields}
