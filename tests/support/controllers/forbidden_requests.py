"""A controller manager with the rights of its roles only, and the requests that it may not send."""

import orjson

from tests.support.processes.process import ApiServerProcess, ManagerProcess, client

LABELS = {"app": "web"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
CLAIMS = [
    {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
]
SPEC = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}


async def _until(admin, check):
    """Check again after each change of a pod."""
    async with admin.watch("/api/v1/pods?watch=true") as changes:
        while not await check():
            await anext(changes)


async def forbidden_requests(tmp_path, workloads, *packs):
    """Return the requests of a manager that were forbidden while it created and deleted workloads: by path, with their specs."""
    audit, kubeconfig = tmp_path / "audit", tmp_path / "controller-manager.kubeconfig"
    flags = (*packs, f"--audit-log-path={audit}", f"--write-manager-kubeconfig={kubeconfig}")
    manager = ("--use-service-account-credentials", "--simulate-nodes=2", *packs)
    with ApiServerProcess(tmp_path, *flags) as server, ManagerProcess(kubeconfig, *manager):
        async with client(server) as admin:
            await _create_workloads(admin, workloads)
    events = [orjson.loads(line) for line in audit.read_bytes().splitlines()]
    of_manager = [event for event in events if event["user"].get("username", "").startswith("system:")]
    assert "system:masters" not in {
        group
        for event in of_manager
        if event["user"]["username"] != "system:apiserver"
        for group in event["user"]["groups"]
    }
    users = {event["user"]["username"].rpartition(":")[2] for event in of_manager}
    assert users > {"kube-controller-manager", "deployment-controller", "statefulset-controller"}
    return [
        (event["user"]["username"], event["verb"], event["requestURI"])
        for event in of_manager
        if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    ]


async def _create_workloads(admin, workloads):
    for path, spec in workloads.items():
        namespace = path.split("/")[-2]
        await admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        created = await admin.post(path, {"metadata": {"name": "web"}, "spec": spec})
        assert created.status == 201, created.body

    async def all_run():
        pods = (await admin.get("/api/v1/pods")).body["items"]
        ready = [
            pod
            for pod in pods
            for condition in pod["status"].get("conditions", ())
            if condition["type"] == "Ready" and condition["status"] == "True"
        ]
        return len(ready) == 2 * len(workloads)

    async def all_gone():
        return not (await admin.get("/api/v1/pods")).body["items"]

    await _until(admin, all_run)
    for path in workloads:
        assert (await admin.delete(f"/api/v1/namespaces/{path.split('/')[-2]}")).status == 200
    await _until(admin, all_gone)
