"""Random clusters and pods for a comparison of schedulers."""

ZONES = ("a", "b", "c")
APPS = ("web", "db", "cache")
TAINTS = (
    {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "web", "effect": "PreferNoSchedule"},
    {"key": "spot", "effect": "PreferNoSchedule"},
    {"key": "broken", "effect": "NoExecute"},
)
OTHER_NAMESPACE = "other"
IMAGES = ("one", "two:v1", "registry.test/three", "registry.test:5000/four")
DRIVERS = ("disk.example.com", "net.example.com")
CLASSES = ("local", "disk", "net", "now")
KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk")


def cluster(random):
    """Yield the objects of a random cluster: resource, object and status."""
    nodes = [f"n{number}" for number in range(random.choice((1, 3, 4, 6, 9)))]
    capacities = {}
    for name in nodes:
        body, status = _node(random, name)
        capacities[name] = int(status["allocatable"]["pods"])
        yield "nodes", body, status
    yield from _storage(random, nodes)
    for app in random.sample(APPS, 2):
        if random.random() < 0.5:
            yield "services", _service(app), None
        if random.random() < 0.5:
            budget = {
                "metadata": {"name": f"{app}-{random.randrange(2)}", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            }
            yield "poddisruptionbudgets", budget, _budget_status(random)
    for number in range(random.choice((0, 6, 15, 30))):
        name = random.choice(nodes)
        if random.random() < 0.9 and capacities[name] <= 0:
            continue
        capacities[name] -= 1
        extra, body = pod(random, f"old-{number}", is_simple=True)
        yield from extra
        body["spec"]["nodeName"] = name
        for container in (*body["spec"]["containers"], *body["spec"].get("initContainers", ())):
            # Two pods of one node never have the same port.
            container.pop("ports", None)
        status = {"phase": "Running", "startTime": f"2026-01-01T00:00:{number:02}Z"}
        yield "pods", body, status


def _storage(random, nodes):
    """Yield storage classes, drivers, what nodes may attach, capacities, and local volumes."""
    for name in CLASSES:
        provisioner = {"local": "kubernetes.io/no-provisioner", "now": "x.example.com"}.get(
            name, f"{name}.example.com"
        )
        body = {"metadata": {"name": name}, "provisioner": provisioner}
        body["volumeBindingMode"] = "Immediate" if name == "now" else "WaitForFirstConsumer"
        if name == "net" and random.random() < 0.3:
            expression = {"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}
            body["allowedTopologies"] = [{"matchLabelExpressions": [expression]}]
        yield "storageclasses", body, None
    for driver in DRIVERS:
        spec = {"storageCapacity": driver == DRIVERS[0], "attachRequired": True}
        if random.random() < 0.2:
            spec["preventPodSchedulingIfMissing"] = True
        yield "csidrivers", {"metadata": {"name": driver}, "spec": spec}, None
    for name in nodes:
        if random.random() < 0.7:
            drivers = [
                {
                    "name": driver,
                    "nodeID": name,
                    "topologyKeys": [],
                    "allocatable": {"count": random.choice((1, 2, 9))},
                }
                for driver in DRIVERS
                if random.random() < 0.8
            ]
            yield "csinodes", {"metadata": {"name": name}, "spec": {"drivers": drivers}}, None
        if random.random() < 0.7:
            capacity = {
                "metadata": {"name": f"c-{name}", "namespace": "default"},
                "storageClassName": "disk",
                "capacity": random.choice(("1Gi", "10Gi", "30Gi")),
                "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": name}},
            }
            if random.random() < 0.2:
                capacity["maximumVolumeSize"] = "2Gi"
            yield "csistoragecapacities", capacity, None
        for number in range(random.choice((0, 0, 1, 2))):
            yield (
                "persistentvolumes",
                _local_volume(random, f"local-{name}-{number}", name),
                {"phase": "Available"},
            )


def _local_volume(random, name, node):
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": random.choice(("1Gi", "5Gi", "20Gi"))},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": f"/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }


def _volume(random, name):
    """Return a volume of a pod, and the objects that it needs."""
    kind = random.random()
    if kind < 0.15:
        disk = {"pdName": random.choice(("one", "two")), "readOnly": random.random() < 0.5}
        return {"gcePersistentDisk": disk}, []
    if kind < 0.2:
        return {"persistentVolumeClaim": {"claimName": "missing"}}, []
    if kind < 0.25:
        return {"image": {"reference": random.choice(IMAGES)}}, []
    claim = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": random.choice((*CLASSES, "disk", "net")),
            "resources": {"requests": {"storage": random.choice(("1Gi", "3Gi", "15Gi"))}},
        },
    }
    source = {"persistentVolumeClaim": {"claimName": name}}
    if kind < 0.6:
        return source, [("persistentvolumeclaims", claim, None)]
    claim["spec"]["volumeName"] = f"v-{name}"
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    volume = {
        "metadata": {"name": f"v-{name}", "labels": {}},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": claim["spec"]["storageClassName"],
            "csi": {"driver": random.choice(DRIVERS), "volumeHandle": f"h-{name}"},
        },
    }
    if random.random() < 0.3:
        zones = random.choice(("a", "b", "a__b"))
        volume["metadata"]["labels"]["topology.kubernetes.io/zone"] = zones
    if random.random() < 0.3:
        expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b", "c"]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        volume["spec"]["nodeAffinity"] = {"required": required}
    objects = [("persistentvolumes", volume, {"phase": "Bound"})] if random.random() < 0.9 else []
    return source, [*objects, ("persistentvolumeclaims", claim, {"phase": "Bound"})]


def _budget_status(random):
    return {
        "disruptionsAllowed": random.randrange(2),
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        "observedGeneration": 1,
    }


def _service(app):
    return {
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
    }


def _node(random, name):
    labels = {}
    if random.random() < 0.95:
        labels["kubernetes.io/hostname"] = name
    if random.random() < 0.85:
        labels["topology.kubernetes.io/zone"] = random.choice(ZONES)
    if random.random() < 0.5:
        labels["disk"] = random.choice(("ssd", "hdd"))
    if random.random() < 0.3:
        labels["size"] = str(random.randrange(10))
    spec = {}
    taints = [taint for taint in TAINTS if random.random() < 0.12]
    if taints:
        spec["taints"] = taints
    if random.random() < 0.07:
        spec["unschedulable"] = True
    amount = {
        "cpu": random.choice(("1", "2", "3500m", "8")),
        "memory": random.choice(("1Gi", "3Gi", "7777Mi", "16Gi")),
        "pods": str(random.choice((2, 4, 8, 20))),
        "ephemeral-storage": random.choice(("1Gi", "100Gi")),
    }
    if random.random() < 0.3:
        amount["example.com/gpu"] = random.choice(("1", "4"))
    features = ["RestartAllContainersOnContainerExits"] if random.random() < 0.5 else []
    status = {
        "declaredFeatures": features,
        "allocatable": amount,
        "capacity": amount,
        "images": _images(random),
    }
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}, status


def _images(random):
    if random.random() < 0.5:
        return []
    return [
        {
            "names": [_full(image), f"{image}@sha256:{'0' * 64}"],
            "sizeBytes": random.choice((10, 90, 700, 3000)) << 20,
        }
        for image in random.sample(IMAGES, 2)
    ]


def _full(image):
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def pod(random, name, *, is_simple=False):
    """Return a random pod, and the objects that are created before it."""
    app = random.choice(APPS)
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [_container(random, number) for number in range(random.choice((1, 1, 1, 2)))],
    }
    if random.random() < 0.1:
        spec["initContainers"] = [_container(random, 9)]
        if random.random() < 0.5:
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if random.random() < 0.6:
        spec["priority"] = random.choice((-5, 0, 0, 10, 10, 100, 1000))
    affinity = {}
    if random.random() < 0.15:
        affinity["podAntiAffinity"] = _pod_affinity(random)
    if random.random() < 0.15:
        affinity["podAffinity"] = _pod_affinity(random)
    extra = _add_volumes(random, spec, name)
    if not is_simple:
        _add_constraints(random, spec, affinity)
    if affinity:
        spec["affinity"] = affinity
    labels = {"app": app}
    if random.random() < 0.3:
        labels["tier"] = random.choice(("front", "back"))
    if random.random() < 0.05:
        labels = {}
    namespace = OTHER_NAMESPACE if not extra and random.random() < 0.2 else "default"
    return extra, {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


def _add_volumes(random, spec, name):
    if random.random() >= 0.25:
        return []
    volumes = [_volume(random, f"{name}-{number}") for number in range(random.choice((1, 1, 2)))]
    spec["volumes"] = [{"name": f"v{number}", **source} for number, (source, _) in enumerate(volumes)]
    return [one for _, objects in volumes for one in objects]


def _add_constraints(random, spec, affinity):
    if random.random() < 0.03:
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}
        spec["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    if random.random() < 0.1:
        spec["preemptionPolicy"] = "Never"
    if random.random() < 0.12:
        spec["nodeSelector"] = {"disk": random.choice(("ssd", "hdd"))}
    if random.random() < 0.3:
        affinity["nodeAffinity"] = _node_affinity(random)
    if random.random() < 0.3:
        spec["tolerations"] = [
            random.choice(
                (
                    {"operator": "Exists"},
                    {"key": "dedicated", "value": "db"},
                    {"key": "dedicated", "operator": "Exists"},
                    {"key": "spot", "operator": "Exists", "effect": "PreferNoSchedule"},
                    {"key": "broken", "operator": "Exists", "effect": "NoExecute"},
                )
            )
        ]
    if random.random() < 0.3:
        spec["topologySpreadConstraints"] = _spread(random)


def _container(random, number):
    requests = {}
    if random.random() < 0.6:
        requests["cpu"] = random.choice(("100m", "333m", "500m", "1", "2", "4"))
    if random.random() < 0.5:
        requests["memory"] = random.choice(("100Mi", "512Mi", "1Gi", "3Gi"))
    if random.random() < 0.1:
        requests["ephemeral-storage"] = random.choice(("100Mi", "2Gi"))
    resources = {"requests": requests}
    if random.random() < 0.05:
        requests["example.com/gpu"] = "1"
        resources["limits"] = {"example.com/gpu": "1"}
    container = {"name": f"c{number}", "image": random.choice(IMAGES), "resources": resources}
    if random.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": random.choice((80, 81))}]
        if random.random() < 0.3:
            container["ports"][0]["hostIP"] = "127.0.0.1"
    return container


def _node_affinity(random):
    term = {"matchExpressions": [_expression(random)]}
    kind = random.random()
    if kind < 0.25:
        names = random.sample(("n0", "n1", "n2", "n7"), random.choice((1, 1, 2)))
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": names[:1]}]}]
        if len(names) == 2:
            terms.append({"matchFields": [{"key": "metadata.name", "operator": "In", "values": names[1:]}]})
        if random.random() < 0.3:
            terms[0]["matchExpressions"] = [_expression(random)]
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if kind < 0.6:
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": random.choice((1, 30, 100)), "preference": {"matchExpressions": [_expression(random)]}}
            for _ in range(random.choice((1, 2)))
        ]
    }


def _expression(random):
    return random.choice(
        (
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "disk", "operator": "NotIn", "values": ["ssd"]},
            {"key": "disk", "operator": "Exists"},
            {"key": "disk", "operator": "DoesNotExist"},
            {"key": "size", "operator": "Gt", "values": ["4"]},
            {"key": "size", "operator": "Lt", "values": ["4"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]},
        )
    )


def _selector(random):
    return random.choice(
        (
            {"matchLabels": {"app": random.choice(APPS)}},
            {"matchLabels": {"app": random.choice(APPS)}},
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            {},
        )
    )


def _pod_affinity(random):
    term = {"topologyKey": random.choice(KEYS), "labelSelector": _selector(random)}
    kind = random.random()
    if kind < 0.15:
        term["namespaces"] = [OTHER_NAMESPACE]
    elif kind < 0.3:
        term["namespaceSelector"] = random.choice(
            ({}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "b"}})
        )
    if random.random() < 0.6:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": random.choice((1, 50, 100)), "podAffinityTerm": term}
        ]
    }


def _spread(random):
    keys = random.sample(KEYS, random.choice((1, 1, 2)))
    constraints = []
    for key in keys:
        constraint = {
            "topologyKey": key,
            "maxSkew": random.choice((1, 1, 2)),
            "whenUnsatisfiable": random.choice(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": _selector(random),
        }
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.3:
            constraint["minDomains"] = random.choice((1, 2, 5))
        if random.random() < 0.3:
            constraint["nodeTaintsPolicy"] = random.choice(("Honor", "Ignore"))
        if random.random() < 0.3:
            constraint["nodeAffinityPolicy"] = random.choice(("Honor", "Ignore"))
        if random.random() < 0.2 and "tier" not in str(constraint["labelSelector"]):
            constraint["matchLabelKeys"] = ["tier"]
        constraints.append(constraint)
    return constraints
