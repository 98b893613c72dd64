"""Random devices, claims and extended resources for a comparison of schedulers."""

from itertools import count

GPU, BIG, LOST = "example.com/gpu", "example.com/big", "example.com/lost"
PART = "example.com/part"
ANY = "deviceclass.resource.kubernetes.io/any"
DRIVERS = ("gpu.example.com", "net.example.com")
CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
_BIG = 'device.attributes["gpu.example.com"].size > 1'


def cluster(random, nodes):
    """Yield the device classes and slices of a cluster. Some nodes have a resource of a class themselves."""
    yield _class("gpu", 'device.driver == "gpu.example.com"', GPU)
    yield _class("any", None, None)
    if random.random() < 0.7:
        yield _class("big", f'device.driver == "gpu.example.com" && {_BIG}', BIG)
    if random.random() < 0.3:
        yield _class("also-gpu", f'device.driver == "gpu.example.com" && {_BIG}', GPU)
    if random.random() < 0.1:
        # An expression that fails for devices of other drivers.
        yield _class("odd", _BIG, LOST)
    yield _class("part", 'device.driver == "part.example.com"', PART)
    yield from _partitions(random, nodes)
    numbers = count()
    for node in nodes:
        if random.random() < 0.75:
            yield _slice(random, next(numbers), DRIVERS[0], node, {"nodeName": node})
    if random.random() < 0.4:
        yield _slice(random, next(numbers), DRIVERS[1], "shared", {"allNodes": True})
    if random.random() < 0.4:
        expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        yield _slice(random, next(numbers), DRIVERS[1], "zonal", {"nodeSelector": selector})


def _partitions(random, nodes):
    """Yield pools whose devices share counters: one of each node, or one of all nodes."""
    for node in nodes:
        if random.random() < 0.4:
            place = {"nodeName": node}
            pool = {"name": f"part-{node}", "generation": 1, "resourceSliceCount": 2}
            yield _counters(random, pool, place)
            yield _partition(random, pool, place, node)
    if random.random() < 0.4:
        pool = {"name": "wide", "generation": 1, "resourceSliceCount": len(nodes) + 1}
        if random.random() < 0.1:
            pool["resourceSliceCount"] += 1
        yield _counters(random, pool, random.choice(({"allNodes": True}, {"nodeName": "n0"})))
        for node in nodes:
            yield _partition(random, pool, {"nodeName": node}, f"wide-{node}")
    if random.random() < 0.3:
        pool = {"name": "picked", "generation": 1, "resourceSliceCount": 2}
        yield _counters(random, pool, {"allNodes": True})
        kind, body = _partition(random, pool, {"perDeviceNodeSelection": True}, "picked")
        for device in body["spec"]["devices"]:
            device.update(random.choice(({"allNodes": True}, {"nodeName": "n0"}, {"nodeName": "n1"})))
        yield kind, body


def _counters(random, pool, place):
    counters = {"memory": {"value": random.choice(("20Gi", "40Gi"))}, "slots": {"value": "4"}}
    sets = [{"name": "a", "counters": counters}, {"name": "b", "counters": {"slots": {"value": "2"}}}]
    spec = {"driver": "part.example.com", "pool": pool, "sharedCounters": sets, **place}
    return "resourceslices", {"metadata": {"name": f"counters-{pool['name']}"}, "spec": spec}


def _partition(random, pool, place, name):
    devices = []
    for index in range(random.choice((2, 4, 6))):
        amounts = {"slots": {"value": random.choice(("1", "2"))}}
        if random.random() < 0.7:
            amounts["memory"] = {"value": random.choice(("5Gi", "10Gi", "20480Mi"))}
        consumed = [{"counterSet": "a", "counters": amounts}]
        if random.random() < 0.3:
            consumed.append({"counterSet": "b", "counters": {"slots": {"value": "1"}}})
        devices.append({"name": f"{name}-p{index}", "consumesCounters": consumed})
    spec = {"driver": "part.example.com", "pool": pool, "devices": devices, **place}
    return "resourceslices", {"metadata": {"name": f"partition-{name}"}, "spec": spec}


def _class(name, expression, resource):
    spec = {} if expression is None else {"selectors": [{"cel": {"expression": expression}}]}
    if resource is not None:
        spec["extendedResourceName"] = resource
    return "deviceclasses", {"metadata": {"name": name}, "spec": spec}


def _slice(random, number, driver, pool, place):
    devices = []
    for index in range(random.choice((1, 2, 4, 6, 9))):
        device = {"name": f"d{index}", "attributes": {"size": {"int": random.randrange(4)}}}
        if random.random() < 0.1:
            device["taints"] = [
                {"key": "broken", "effect": random.choice(("NoSchedule", "NoExecute", "None"))}
            ]
        devices.append(device)
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
        **place,
    }
    return "resourceslices", {"metadata": {"name": f"s{number}"}, "spec": spec}


def add_to_pod(random, body):
    """Add requests for devices to a pod, and return the claims that are created before it."""
    spec, metadata = body["spec"], body["metadata"]
    if random.random() < 0.4:
        amount = random.choice((1, 1, 2, 3))
        init = [_container(f"i{number}", random) for number in range(amount)]
        spec["initContainers"] = [*spec.get("initContainers", ()), *init]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        for name in (GPU, ANY, BIG, PART, LOST):
            if random.random() < (0.01 if name == LOST else 0.15):
                _request(container, name, random.choice((1, 1, 1, 2, 3)))
    claims = [
        _claim(random, f"{metadata['name']}-{number}", metadata["namespace"])
        for number in range(random.choice((0, 0, 0, 0, 1, 1, 2)))
    ]
    if claims:
        spec["resourceClaims"] = [
            {"name": f"r{number}", "resourceClaimName": claim["metadata"]["name"]}
            for number, claim in enumerate(claims)
        ]
    if random.random() < 0.05:
        _request(spec["containers"][0], GPU, 1)
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    return [("resourceclaims", claim, None) for claim in claims]


def _container(name, random):
    container = {"name": name, "image": "one", "resources": {"requests": {"cpu": "10m"}}}
    if random.random() < 0.4:
        container["restartPolicy"] = "Always"
    return container


def _request(container, name, amount):
    resources = container["resources"]
    resources.setdefault("requests", {})[name] = str(amount)
    resources.setdefault("limits", {})[name] = str(amount)


def _claim(random, name, namespace):
    requests = []
    for number in range(random.choice((1, 1, 2))):
        if random.random() < 0.4:
            classes = random.sample(("gpu", "any", "part"), 2)
            alternatives = [
                {"name": f"s{index}", "deviceClassName": one, "count": random.choice((1, 2, 2))}
                for index, one in enumerate(classes)
            ]
            requests.append({"name": f"q{number}", "firstAvailable": alternatives})
        else:
            exactly = {
                "deviceClassName": random.choice(("gpu", "any", "part")),
                "count": random.choice((1, 1, 2)),
            }
            requests.append({"name": f"q{number}", "exactly": exactly})
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"devices": {"requests": requests}}}


def stale_claim(pod):
    """Return a claim for extended resources as an earlier attempt to schedule a pod leaves it."""
    metadata = pod["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    request = {"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu", "count": 1}}
    return {
        "metadata": {
            "name": f"{metadata['name']}-stale",
            "namespace": metadata["namespace"],
            "annotations": {CLAIM_ANNOTATION: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [request]}},
    }
