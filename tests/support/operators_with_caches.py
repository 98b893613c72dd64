"""Operators that list from the cache of a server, or keep a cache of their own: each with a known bug, and without it.

`keeper` keeps the data of the ConfigMap `site` in another one, and deletes them with it. With its bug, it deletes the data of a new site
if its lists show the old one, which is being deleted. `scaler` adds the difference to what it has noted before to the
size of a child, with its bug twice after a crash. `forgetful` writes a size to the account of a site, but with its bug not if its cache
says that the account has it, which is old while events are held back.
"""

import threading

from tests.support.explored_operators import ANY_VERSION, FINALIZER, PATH, Api, annotation, follow

CACHED = f"{PATH}?{ANY_VERSION}"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def site(size):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}, "data": {"size": size}}


def resized(size, condition):
    patch = {"patch": "ConfigMap/site", "with": {"data": {"size": size}}}
    return {**patch, "until": [condition.format(size)]}


KEEPER_SCENARIO = {
    "act": [{"apply": site("1"), "until": ["ConfigMap/site jsonpath={.metadata.annotations.ready}=1"]}],
    "invariants": [
        {
            "name": "the data of a site are kept",
            "kinds": ["ConfigMap"],
            "expression": "object != null || oldObject.metadata.name != 'site-data' || "
            "!cluster['ConfigMap'].exists(c, c.metadata.name == 'site' && !has(c.metadata.deletionTimestamp))",
        }
    ],
}
NOTED = "ConfigMap/site jsonpath={{.metadata.annotations.noted}}={}"
SCALER_SCENARIO = {"act": [{"apply": site("2"), "until": [NOTED.format("2")]}, resized("5", NOTED)]}
READY = "ConfigMap/ready jsonpath={{.data.size}}={}"
FORGETFUL_SCENARIO = {
    "act": [
        {"apply": site("1"), "until": [READY.format("1")]},
        resized("3", READY),
        resized("1", READY),
    ]
}


def keeper(kubeconfig, *, is_careful=False):
    api = Api(kubeconfig)

    def reconcile(items):
        found = {item["metadata"]["name"]: item for item in items}
        cached, data = found.get("site"), found.get("site-data")
        if cached is None:
            return
        uid = cached["metadata"]["uid"]
        if "deletionTimestamp" in cached["metadata"]:
            if is_careful and api.request("GET", f"{PATH}/site")["metadata"]["uid"] != uid:
                return
            if data is not None:
                api.request("DELETE", f"{PATH}/site-data")
            api.request("PATCH", f"{PATH}/site", {"metadata": {"finalizers": None}})
            return
        if FINALIZER not in cached["metadata"].get("finalizers", []):
            api.request("PATCH", f"{PATH}/site", {"metadata": {"finalizers": [FINALIZER], "uid": uid}})
        if data is None:
            api.request("POST", PATH, {"metadata": {"name": "site-data"}})
        if cached["metadata"].get("annotations", {}).get("ready") != "1":
            api.request("PATCH", f"{PATH}/site", annotation("ready", "1"))

    follow(api, CACHED, reconcile)


def careful_keeper(kubeconfig):
    keeper(kubeconfig, is_careful=True)


def scaler(kubeconfig, *, is_careful=False):
    api = Api(kubeconfig)

    def reconcile(items):
        found = {item["metadata"]["name"]: item for item in items}
        if "site" not in found:
            return
        size = found["site"]["data"]["size"]
        noted = found["site"]["metadata"].get("annotations", {}).get("noted", "0")
        if "child" not in found:
            api.request("POST", PATH, {"metadata": {"name": "child"}, "data": {"size": "0"}})
        if noted != size:
            now = int(api.request("GET", f"{PATH}/child")["data"]["size"])
            scaled = size if is_careful else str(now + int(size) - int(noted))
            api.request("PATCH", f"{PATH}/child", {"data": {"size": scaled}})
            api.request("PATCH", f"{PATH}/site", annotation("noted", size))

    follow(api, f"{PATH}?", reconcile)


def careful_scaler(kubeconfig):
    scaler(kubeconfig, is_careful=True)


def forgetful(kubeconfig, *, is_careful=False):
    """Write the size of a site to its account; another thread notes what the account has, and its events reconcile nothing."""
    api, sizes = Api(kubeconfig), {}

    def note_account(items):
        for account in items:
            sizes["account"] = account["metadata"]["annotations"]["size"]
            put(noting, f"{PATH}/ready", {"data": {"size": sizes["account"]}})

    def reconcile(items):
        for item in items:
            size = item["data"]["size"]
            if is_careful or sizes.get("account") != size:
                put(api, f"{ACCOUNTS}/site", annotation("size", size))

    noting = Api(kubeconfig)
    of_account = f"{ACCOUNTS}?fieldSelector=metadata.name%3Dsite&"
    threading.Thread(target=follow, args=(noting, of_account, note_account), daemon=True).start()
    follow(api, f"{PATH}?fieldSelector=metadata.name%3Dsite&", reconcile)


def careful_forgetful(kubeconfig):
    forgetful(kubeconfig, is_careful=True)


def put(api, path, tree):
    """Write to an object, which is created if it is missing."""
    try:
        api.request("PATCH", path, tree)
    except OSError as error:
        if ": 404 " not in str(error):
            raise
        collection, _, name = path.rpartition("/")
        api.request("POST", collection, {**tree, "metadata": {**tree.get("metadata", {}), "name": name}})
