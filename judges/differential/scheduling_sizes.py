"""Random resources of pods themselves, and resizes in progress, for a comparison of schedulers."""

CPUS = ("50m", "200m", "700m", "1500m", "3")
MEMORIES = ("50Mi", "300Mi", "1Gi", "3Gi")


def add_to_pod(random, body):
    """Give some pods resources of their own, with containers that request less."""
    if random.random() >= 0.3:
        return
    spec = body["spec"]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        small = {"cpu": random.choice(("10m", "100m")), "memory": random.choice(("10Mi", "90Mi"))}
        container["resources"] = {"requests": _some(random, small, 0.5)}
    own = {"cpu": random.choice(("500m", "2")), "memory": random.choice(("500Mi", "2Gi"))}
    spec["resources"] = {"requests": _some(random, own, 0.7)}


def status_of(random, body, status):
    """Return the status of a running pod: its containers may have other resources than its spec."""
    spec = body["spec"]
    changed = {
        **status,
        "containerStatuses": _container_statuses(random, spec["containers"]),
        "initContainerStatuses": _container_statuses(random, spec.get("initContainers", ())),
    }
    if random.random() < (0.6 if "resources" in spec else 0.2):
        changed["resources"] = {"requests": _sizes(random)}
    if random.random() < (0.6 if "resources" in spec else 0.2):
        changed["allocatedResources"] = _sizes(random)
    if random.random() < 0.3:
        reason = random.choice(("Infeasible", "Infeasible", "Deferred"))
        changed["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return changed


def _container_statuses(random, containers):
    return [_container_status(random, container) for container in containers if random.random() < 0.9]


def _container_status(random, container):
    status = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "restartCount": 0,
    }
    if random.random() < 0.7:
        status["resources"] = {"requests": _sizes(random)} if random.random() < 0.9 else {}
    if random.random() < 0.7:
        status["allocatedResources"] = _sizes(random)
    return status


def _sizes(random):
    return _some(random, {"cpu": random.choice(CPUS), "memory": random.choice(MEMORIES)}, 0.8)


def _some(random, amounts, share):
    return {name: amount for name, amount in amounts.items() if random.random() < share}
