"""Claims, volumes and classes for tests of filters and scores."""

from tests.support.controllers.scheduler_objects import HOST

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
DRIVER = "csi.example.com"


def claim(
    name="data", *, size="1Gi", storage_class="local", volume=None, annotations=(), status=(), **fields
):
    """Return a claim; with a volume it is bound."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
    spec |= {"resources": {"requests": {"storage": size}}} if size else {}
    spec |= {"volumeName": volume} if volume else {}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"claim-{name}",
        "resourceVersion": "1",
        "annotations": {**(BOUND if volume else {}), **dict(annotations)},
    }
    return {
        "metadata": metadata | fields.pop("metadata", {}),
        "spec": spec | fields,
        "status": dict(status),
    }


def volume(name="disk", *, size="1Gi", storage_class="local", on=None, labels=(), **fields):
    """Return a volume; with `on` it is reachable from nodes with that name."""
    expression = {"key": HOST, "operator": "In", "values": [on]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "capacity": {"storage": size},
    }
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": dict(labels)},
        "spec": spec | ({"nodeAffinity": affinity} if on else {}) | fields,
        "status": {"phase": "Available"},
    }


def storage_class(name="local", *, provisioner="kubernetes.io/no-provisioner", **fields):
    return {
        "metadata": {"name": name, "resourceVersion": "1"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


def csi(handle, driver=DRIVER):
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def csi_driver(**spec):
    return {"metadata": {"name": DRIVER, "resourceVersion": "1"}, "spec": spec}


def capacity(amount="1Gi", *, on="a", storage_class="local", **fields):
    """Return the capacity of a class on a node."""
    return {
        "metadata": {"name": f"{storage_class}-{on}", "namespace": "default", "resourceVersion": "1"},
        "storageClassName": storage_class,
        "nodeTopology": {"matchLabels": {HOST: on}},
        **({} if amount is None else {"capacity": amount}),
        **fields,
    }


def storage(*claims, volumes=(), classes=None, **more):
    """Return the objects of a snapshot's storage; without classes it has the default one."""
    classes = [storage_class()] if classes is None else classes
    return {"claims": claims, "volumes": volumes, "classes": classes, **more}


def uses(*names, **sources):
    """Return the `volumes` of a pod that uses claims, and volumes of its own by their source."""
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {"volumes": [*claims, *({"name": source, source: fields} for source, fields in sources.items())]}
