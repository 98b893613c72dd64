"""A careless operator: edge-triggered, it acts once for each event, and believes that every request succeeds."""

from api import WEBSITES, deployment_of, send, watch

listed = send("GET", WEBSITES)  # what exists already needs nothing, it believes
for event in watch(WEBSITES, listed["metadata"]["resourceVersion"]):
    if event["type"] == "ADDED":
        website = event["object"]
        namespace, name = website["metadata"]["namespace"], website["metadata"]["name"]
        note = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-note"},
            "data": {"made": "yes"},
        }
        send("POST", f"/api/v1/namespaces/{namespace}/configmaps", note)
        send("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment_of(website))
