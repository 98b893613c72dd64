"""Two operators that make a child for the ConfigMap `site`: a careless one with two known bugs, and a careful one without.

Bugs of the careless one: it makes a second child if it does not record the first one, and it records no owner, so that
the child stays when its site is deleted. The careful one has a finalizer, and deletes the child before it removes it.
"""

import base64
import http.client
import select
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

import orjson

PATH = "/api/v1/namespaces/default/configmaps"
SCENARIO = {
    "act": [
        {
            "apply": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "site"},
                "data": {"color": "red"},
            },
            "until": ["ConfigMap/site jsonpath={.metadata.annotations.ready}=1"],
        }
    ]
}
ANY_VERSION = "resourceVersion=0&"
MERGE_PATCH = "application/merge-patch+json"
RETRY_SECONDS = 0.03
FINALIZER = "test.example.com/child"


class Api:
    def __init__(self, kubeconfig):
        config = orjson.loads(Path(kubeconfig).read_bytes())
        cluster, self._token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
        self._url = urlsplit(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._connection = self._connect()

    def _connect(self):
        return http.client.HTTPSConnection(self._url.hostname, self._url.port, context=self._context)

    def request(self, method, path, body=None):
        """Send a request, and return the object; raise OSError for every error."""
        try:
            self._connection.request(method, path, body and orjson.dumps(body), self._headers(method))
            response = self._connection.getresponse()
            tree = orjson.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = self._connect()
            raise OSError(str(error)) from error
        if response.status >= 300:
            raise OSError(f"{method} {path}: {response.status} {tree.get('message')}")
        return tree

    def wait_for_event(self, path, version):
        """Wait for an event of a watch, or its end."""
        connection = self._connect()
        try:
            connection.request(
                "GET", f"{path}watch=1&resourceVersion={version}", headers=self._headers("GET")
            )
            connection.getresponse().readline()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def _headers(self, method):
        content = MERGE_PATCH if method == "PATCH" else "application/json"
        return {"Authorization": f"Bearer {self._token}", "User-Agent": "test", "Content-Type": content}


def careless(kubeconfig):
    api = Api(kubeconfig)

    def reconcile(site):
        notes = site["metadata"].get("annotations", {})
        if "child" not in notes:
            child = api.request("POST", PATH, {"metadata": {"generateName": "child-"}})
            api.request("PATCH", f"{PATH}/site", annotation("child", child["metadata"]["name"]))
        if notes.get("ready") != "1":
            api.request("PATCH", f"{PATH}/site", annotation("ready", "1"))

    follow(
        api, f"{PATH}?fieldSelector=metadata.name%3Dsite&", lambda items: [reconcile(item) for item in items]
    )


def careful(kubeconfig):
    api = Api(kubeconfig)

    def reconcile(items):
        found = {item["metadata"]["name"]: item for item in items}
        site, child = found.get("site"), found.get("site-child")
        if site is None:
            return
        if "deletionTimestamp" in site["metadata"]:
            end_site(api, child)
            return
        if FINALIZER not in site["metadata"].get("finalizers", []):
            api.request("PATCH", f"{PATH}/site", {"metadata": {"finalizers": [FINALIZER]}})
        wanted = child_of(site)
        if child is not None and child["metadata"]["ownerReferences"][0]["uid"] != site["metadata"]["uid"]:
            api.request("DELETE", f"{PATH}/site-child")
            child = None
        if child is None:
            api.request("POST", PATH, wanted)
        elif child.get("data") != wanted["data"]:
            api.request("PATCH", f"{PATH}/site-child", {"data": wanted["data"]})
        if site["metadata"].get("annotations", {}).get("ready") != "1":
            api.request("PATCH", f"{PATH}/site", annotation("ready", "1"))

    follow(api, f"{PATH}?", reconcile)


def end_site(api, child):
    if child is not None:
        api.request("DELETE", f"{PATH}/site-child")
    api.request("PATCH", f"{PATH}/site", {"metadata": {"finalizers": None}})


def child_of(site):
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "site", "uid": site["metadata"]["uid"]}
    metadata = {"name": "site-child", "ownerReferences": [owner]}
    return {"metadata": metadata, "data": {"color": site.get("data", {}).get("color", "")}}


def annotation(name, value):
    return {"metadata": {"annotations": {name: value}}}


def follow(api, path, reconcile):
    """List, reconcile, wait for an event, and again; after an error a little later."""
    while True:
        try:
            listed = api.request("GET", path)
            reconcile(listed["items"])
            # A list may be of any version; a watch of any version would begin with an event of each object, again and again.
            api.wait_for_event(path.replace(ANY_VERSION, ""), listed["metadata"]["resourceVersion"])
        except OSError as error:
            print(error, flush=True)  # noqa: T201 - it is the log of an operator
            select.select([], [], [], RETRY_SECONDS)


if __name__ == "__main__":
    {"careless": careless, "careful": careful}[sys.argv[1]](sys.argv[2])
