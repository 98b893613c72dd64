"""Roll a Deployment to a new image and watch it, with the official client."""

from pathlib import Path

from kubernetes import client, watch

from mockube import Cluster

with Cluster(nodes=3) as cluster:
    cluster.apply(Path("web.yaml"))
    cluster.wait("Deployment", "web", "Available")
    print("web runs nginx:1.28")

    apps = client.AppsV1Api(cluster.kubernetes())
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]}}}}
    patched = apps.patch_namespaced_deployment("web", "default", image)

    events = watch.Watch().stream(apps.list_namespaced_deployment, "default", timeout_seconds=60)
    for event in events:
        status = event["object"].status
        if status.observed_generation < patched.metadata.generation:
            continue  # the status is that of the old template
        updated, available = status.updated_replicas or 0, status.available_replicas or 0
        print(f"{updated} updated, {available} of {status.replicas} available")
        if updated == available == status.replicas == patched.spec.replicas:
            break
    else:
        raise SystemExit("the rollout did not complete within a minute")
    print("web runs nginx:1.29")
