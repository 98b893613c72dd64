"""A small client of the API server for the two operators."""

import base64
import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import yaml

config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())


def entry(kind, name):
    return next(each[kind] for each in config[f"{kind}s"] if each["name"] == name)


context = entry("context", config["current-context"])
cluster, user = entry("cluster", context["cluster"]), entry("user", context["user"])
tls = ssl.create_default_context()
if "certificate-authority-data" in cluster:
    tls.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
else:
    tls.load_verify_locations(cluster["certificate-authority"])
WEBSITES = "/apis/example.com/v1/websites"


def open_url(method, path, body=None, kind="application/json"):
    headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": kind}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(cluster["server"] + path, data, headers, method=method)
    return urllib.request.urlopen(request, context=tls, timeout=3600)


def send(method, path, body=None, kind="application/json"):
    with open_url(method, path, body, kind) as response:
        return json.load(response)


def watch(path, version):
    with open_url("GET", f"{path}?watch=1&timeoutSeconds=3000&resourceVersion={version}") as response:
        for line in response:
            yield json.loads(line)


def deployment_of(website):
    labels = {"website": website["metadata"]["name"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": website["metadata"]["name"],
            "ownerReferences": [
                {
                    "apiVersion": "example.com/v1",
                    "kind": "Website",
                    "name": website["metadata"]["name"],
                    "uid": website["metadata"]["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": {
            "replicas": website["spec"]["pages"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"title": website["spec"].get("title", "")}},
                "spec": {"containers": [{"name": "page", "image": "nginx:1.29"}]},
            },
        },
    }
