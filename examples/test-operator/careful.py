"""A careful operator: level-triggered, it applies what should be, and tries again after each error."""

import queue
import signal
import sys
import threading
import urllib.error
from http.client import HTTPException

from api import WEBSITES, deployment_of, send, watch

keys = queue.Queue()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def follow(path, key_of):
    """List and watch, and put the key of the website that each object concerns into a queue; begin anew after an error."""
    while True:
        try:
            listed = send("GET", path)
            for item in listed["items"]:
                keys.put(key_of(item))
            for event in watch(path, listed["metadata"]["resourceVersion"]):
                if event["type"] == "ERROR":
                    break
                keys.put(key_of(event["object"]))
        except (OSError, HTTPException, ValueError) as error:
            print("watch:", error, flush=True)
            threading.Event().wait(0.5)


def own_key(website):
    return website["metadata"]["namespace"], website["metadata"]["name"]


def owner_key(deployment):
    owners = deployment["metadata"].get("ownerReferences", ())
    names = [owner["name"] for owner in owners if owner["kind"] == "Website"]
    return (deployment["metadata"]["namespace"], names[0]) if names else None


def reconcile(namespace, name):
    try:
        website = send("GET", f"/apis/example.com/v1/namespaces/{namespace}/websites/{name}")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return  # the garbage collector deletes what it owns
        raise
    if "deletionTimestamp" in website["metadata"]:
        return
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}?fieldManager=websites&force=true"
    deployment = send("PATCH", path, deployment_of(website), "application/apply-patch+yaml")
    ready = deployment.get("status", {}).get("readyReplicas", 0)
    if website.get("status", {}).get("ready") != ready:
        path = f"/apis/example.com/v1/namespaces/{namespace}/websites/{name}/status"
        send("PATCH", path, {"status": {"ready": ready}}, "application/merge-patch+json")


threading.Thread(target=follow, args=(WEBSITES, own_key), daemon=True).start()
threading.Thread(target=follow, args=("/apis/apps/v1/deployments", owner_key), daemon=True).start()
while True:
    key = keys.get()
    if key is not None:
        try:
            reconcile(*key)
        except (OSError, HTTPException, ValueError) as error:
            print("reconcile:", error, flush=True)
            threading.Timer(0.5, keys.put, [key]).start()
