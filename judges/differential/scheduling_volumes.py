"""The controllers for volumes during a comparison of schedulers."""

_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


class ClaimBinder:
    def __init__(self, server, paths, closed):
        self._server = server
        self._paths = paths
        self._closed = closed

    def run(self):
        """Bind claims as the controllers for volumes do: to the volumes that the scheduler has chosen, or to new ones."""
        while not self._closed.wait(0.05):
            claims = self._server.send({"method": "GET", "path": self._paths["persistentvolumeclaims"]})[
                "body"
            ]["items"]
            waiting = [one for one in claims if "volumeName" not in one["spec"]]
            volumes = []
            if waiting:
                volumes = self._server.send({"method": "GET", "path": self._paths["persistentvolumes"]})[
                    "body"
                ]["items"]
            by_claim = {
                volume["spec"]["claimRef"]["uid"]: volume["metadata"]["name"]
                for volume in volumes
                if "claimRef" in volume["spec"]
            }
            for claim in waiting:
                if claim["metadata"]["uid"] in by_claim:
                    self._bind_claim(claim, by_claim[claim["metadata"]["uid"]])
                elif "volume.kubernetes.io/selected-node" in claim["metadata"].get("annotations", {}):
                    self._bind_claim(claim, self._provision(claim))

    def _bind_claim(self, claim, volume):
        path = f"{_CLAIMS}/{claim['metadata']['name']}"
        annotations = claim["metadata"].get("annotations", {}) | {"pv.kubernetes.io/bind-completed": "yes"}
        body = {
            **claim,
            "metadata": {**claim["metadata"], "annotations": annotations},
            "spec": {**claim["spec"], "volumeName": volume},
        }
        answer = self._server.send({"method": "PUT", "path": path, "body": body})
        if answer["status"] == 200:
            body = {**answer["body"], "status": {"phase": "Bound"}}
            self._server.send({"method": "PUT", "path": f"{path}/status", "body": body})

    def _provision(self, claim):
        name = f"pv-{claim['metadata']['name']}"
        reference = {
            "namespace": "default",
            "name": claim["metadata"]["name"],
            "uid": claim["metadata"]["uid"],
        }
        spec = {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "storageClassName": claim["spec"]["storageClassName"],
            "csi": {"driver": f"{claim['spec']['storageClassName']}.example.com", "volumeHandle": name},
            "claimRef": reference,
        }
        body = {"metadata": {"name": name}, "spec": spec}
        self._server.send({"method": "POST", "path": self._paths["persistentvolumes"], "body": body})
        return name
