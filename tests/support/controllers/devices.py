"""Claims for devices, the pods that name them, and slices of devices."""

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.podview import PodView
from mockube.scheduler.podinfo import PodInfo


def claim(spec, name="c", **more):
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec, **more}


def pod(*names, **spec):
    claims = [{"name": name, "resourceClaimName": name} for name in names]
    metadata = {"name": "p", "namespace": "default", "uid": "p"}
    return PodInfo.of(
        PodView.of({"metadata": metadata, "spec": {"containers": [], "resourceClaims": claims, **spec}}),
        FeatureGates(),
    )


def request(name="r", **exactly):
    return {"name": name, "exactly": {"deviceClassName": "any", **exactly}}


def slices(count, **place):
    devices = [{"name": f"g{number}"} for number in range(count)]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "pool": pool, "devices": devices, **(place or {"allNodes": True})}
    return [{"metadata": {"name": "s"}, "spec": spec}]


def spec(*requests, **more):
    return {"devices": {"requests": list(requests), **more}}
