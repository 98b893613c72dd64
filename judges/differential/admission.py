"""Conversations about admission: a namespace with pod security, limits and quotas, and pods and workloads in it."""

import copy
from collections.abc import Generator
from random import Random

from judges.differential.conversations import MERGE, request

HERE = "/namespaces/${ns}"
LEVELS = ("privileged", "baseline", "restricted")
VERSIONS = ("latest", "v1.24", "v1.0", "v1.36", "v1.99", "x")
QUANTITIES = ("1", "100m", "2", "64Mi", "1Gi", "500Mi", "0", "1.5", "10", "250m")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
CAPABILITIES = ("ALL", "NET_ADMIN", "NET_BIND_SERVICE", "CHOWN", "SYS_TIME")
SCOPES = (
    ["Terminating"], ["NotTerminating"], ["BestEffort"], ["NotBestEffort"], ["CrossNamespacePodAffinity"],
    ["Terminating", "NotBestEffort"], ["x"], ["BestEffort", "NotBestEffort"],
)  # fmt: skip
HARD = (
    "pods", "requests.cpu", "limits.cpu", "requests.memory", "limits.memory", "cpu", "memory", "count/configmaps",
    "configmaps", "secrets", "services", "services.nodeports", "services.loadbalancers", "count/deployments.apps",
    "count/jobs.batch", "requests.storage", "persistentvolumeclaims", "requests.example.com/gpu", "count/pods",
    "fast.storageclass.storage.k8s.io/requests.storage", "requests.ephemeral-storage", "count/nothing.example.com",
)  # fmt: skip
VOLUMES = (
    {"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {"configMap": {"name": "c"}}, {"secret": {"secretName": "s"}},
    {"nfs": {"server": "s", "path": "/"}}, {"csi": {"driver": "d.example.com"}}, {"downwardAPI": {}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}},
    {"persistentVolumeClaim": {"claimName": "p"}}, {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2000-01.a:b", "lun": 0}},
)  # fmt: skip


def cases(seed: int) -> Generator[Generator[dict, dict, None], None, None]:
    """Yield conversations without end."""
    number = 0
    while True:
        yield _Case(Random(f"admission/{seed}/{number}")).requests()
        number += 1


class _Case:
    def __init__(self, random):
        self.random = random

    def requests(self) -> Generator[dict, dict, None]:
        random = self.random
        labels = self._levels()
        yield request(
            "PATCH", "/api/v1/namespaces/${ns}", "", {"metadata": {"labels": labels}}, content=MERGE
        )
        for number in range(random.choice((0, 1, 1, 2))):
            yield request("POST", f"/api/v1{HERE}/limitranges", "", self._limits(f"l{number}"))
        for number in range(random.choice((0, 1, 1, 2))):
            body = self._quota(f"q{number}")
            created = yield request("POST", f"/api/v1{HERE}/resourcequotas", "", body)
            if created["status"] == 201:
                hard = body["spec"]["hard"]
                status = {
                    "status": {
                        "hard": hard,
                        "used": dict.fromkeys(hard, random.choice(("0", "0", "1", "500m"))),
                    }
                }
                path = f"/api/v1{HERE}/resourcequotas/q{number}/status"
                yield request("PATCH", path, "", status, content=MERGE)
        for number in range(8):
            name = f"x{number}"
            created = yield self._create(name)
            if created["status"] == 201 and random.random() < 0.3:
                yield from self._update_request(name, created["body"])
        yield request("GET", f"/api/v1{HERE}/resourcequotas")
        if random.random() < 0.5:
            labels = self._levels()
            yield request(
                "PATCH", "/api/v1/namespaces/${ns}", "", {"metadata": {"labels": labels}}, content=MERGE
            )

    def _levels(self):
        random = self.random
        found = {}
        for mode in random.sample(("enforce", "audit", "warn"), random.choice((0, 1, 2, 3))):
            found[f"pod-security.kubernetes.io/{mode}"] = random.choice((*LEVELS, *LEVELS, *LEVELS, "x"))
            if random.random() < 0.3:
                found[f"pod-security.kubernetes.io/{mode}-version"] = random.choice(VERSIONS)
        return found

    def _amounts(self, names=RESOURCES):
        random = self.random
        chosen = random.sample(names, random.choice((0, 1, 1, 2)))
        return {name: random.choice(QUANTITIES) for name in chosen}

    def _limits(self, name):
        random = self.random
        limits = []
        for _ in range(random.choice((1, 1, 2))):
            item = {"type": random.choice(("Container", "Container", "Pod", "PersistentVolumeClaim", "x"))}
            fields = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
            names = ("storage",) if item["type"] == "PersistentVolumeClaim" else RESOURCES
            for field in random.sample(fields, random.choice((1, 2, 3))):
                item[field] = {one: random.choice(QUANTITIES) for one in random.sample(names, 1)}
            limits.append(item)
        return {"metadata": {"name": name}, "spec": {"limits": limits}}

    def _quota(self, name):
        random = self.random
        hard = {one: random.choice(QUANTITIES) for one in random.sample(HARD, random.choice((1, 2, 3)))}
        spec = {"hard": hard}
        if random.random() < 0.25:
            spec["scopes"] = random.choice(SCOPES)
        if random.random() < 0.15:
            operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            values = {"values": ["high"]} if "In" in operator else {}
            selected = {
                "scopeName": random.choice(("PriorityClass", "BestEffort")),
                "operator": operator,
            } | values
            spec["scopeSelector"] = {"matchExpressions": [selected]}
        return {"metadata": {"name": name}, "spec": spec}

    def _container(self, name):
        random = self.random
        found = {"name": name, "image": "nginx"}
        if random.random() < 0.7:
            found["resources"] = {"requests": self._amounts(), "limits": self._amounts()}
        if random.random() < 0.6:
            found["securityContext"] = self._security(container=True)
        if random.random() < 0.2:
            found["ports"] = [{"containerPort": 80, "hostPort": random.choice((0, 80))}]
        if random.random() < 0.1:
            found["livenessProbe"] = {"httpGet": {"port": 80, "host": random.choice(("", "127.0.0.1", "h"))}}
        return found

    def _security(self, *, container):
        random = self.random
        choices = {
            "runAsNonRoot": (True, True, False), "runAsUser": (0, 1000),
            "seccompProfile": ({"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "x"}),
            "seLinuxOptions": ({"type": "container_t"}, {"type": "x"}, {"user": "u"}, {"role": "r"}),
            "appArmorProfile": ({"type": "RuntimeDefault"}, {"type": "Unconfined"}),
            "windowsOptions": ({"hostProcess": True}, {"hostProcess": False}),
        }  # fmt: skip
        if container:
            choices |= {
                "privileged": (True, False), "allowPrivilegeEscalation": (True, False, False),
                "capabilities": ({"drop": ["ALL"]}, {"drop": ["ALL"], "add": random.sample(CAPABILITIES, 1)}, {"add": random.sample(CAPABILITIES, 2)}),
                "procMount": ("Default", "Unmasked"), "readOnlyRootFilesystem": (True,),
            }  # fmt: skip
        else:
            choices |= {
                "sysctls": ([{"name": "net.ipv4.tcp_syncookies", "value": "1"}], [{"name": "kernel.msgmax", "value": "1"}]),
                "supplementalGroups": ([0],), "fsGroup": (0,),
            }  # fmt: skip
        names = random.sample(sorted(choices), random.choice((0, 1, 2, 4)))
        return {name: copy.deepcopy(random.choice(choices[name])) for name in names}

    def _pod(self):
        random = self.random
        spec = {"containers": [self._container(f"c{i}") for i in range(random.choice((1, 1, 2)))]}
        if random.random() < 0.2:
            spec["initContainers"] = [self._container("i")]
            if random.random() < 0.5:
                spec["initContainers"][0]["restartPolicy"] = "Always"
        if random.random() < 0.5:
            spec["securityContext"] = self._security(container=False)
        for field in random.sample(("hostNetwork", "hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"), random.choice((0, 0, 1, 2))):  # fmt: skip
            spec[field] = random.choice((True, False))
        if random.random() < 0.3:
            spec["volumes"] = [
                {"name": f"v{i}", **volume} for i, volume in enumerate(random.sample(VOLUMES, 2))
            ]
        if random.random() < 0.15:
            spec["resources"] = {
                "requests": self._amounts(RESOURCES[:2]),
                "limits": self._amounts(RESOURCES[:2]),
            }
        if random.random() < 0.1:
            spec["activeDeadlineSeconds"] = 5
        if random.random() < 0.1:
            spec["os"] = {"name": random.choice(("linux", "windows"))}
        return spec

    def _create(self, name):
        random = self.random
        meta = {"metadata": {"name": name}}
        options = random.choice(("", "", "", "", "dryRun=All"))
        template = {"metadata": {"labels": {"a": "b"}}, "spec": self._pod()}
        if random.random() < 0.1:
            template["metadata"]["annotations"] = {
                "container.apparmor.security.beta.kubernetes.io/c0": "unconfined"
            }
        selected = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        never = template | {"spec": template["spec"] | {"restartPolicy": "Never"}}
        kinds = {
            "api/v1/pods": template | {"metadata": template["metadata"] | {"name": name}},
            "apis/apps/v1/deployments": meta | {"spec": selected},
            "apis/apps/v1/replicasets": meta | {"spec": selected},
            "apis/apps/v1/daemonsets": meta | {"spec": selected},
            "apis/apps/v1/statefulsets": meta | {"spec": selected | {"serviceName": "s"}},
            "apis/batch/v1/jobs": meta | {"spec": {"template": never}},
            "apis/batch/v1/cronjobs": meta | {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": never}}}},
            "api/v1/replicationcontrollers": meta | {"spec": {"selector": {"a": "b"}, "template": template}},
            "api/v1/podtemplates": meta | {"template": template},
            "api/v1/configmaps": meta | {"data": {}},
            "api/v1/services": meta | {"spec": {"type": random.choice(("NodePort", "LoadBalancer", "ClusterIP")), "ports": [{"port": 80}]}},
            "api/v1/persistentvolumeclaims": meta | {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": random.choice(("", "fast")), "resources": {"requests": {"storage": random.choice(QUANTITIES)}}}},
        }  # fmt: skip
        path = "api/v1/pods" if random.random() < 0.55 else random.choice(sorted(kinds))
        root, _, plural = path.rpartition("/")
        self.path = f"/{root}{HERE}/{plural}"
        return request("POST", self.path, options, kinds[path])

    def _update_request(self, name, made):
        random = self.random
        if made.get("kind") == "Pod":
            resources = {"requests": self._amounts(RESOURCES[:2]), "limits": self._amounts(RESOURCES[:2])}
            containers = [{"name": made["spec"]["containers"][0]["name"], "resources": resources}]
            debugger = {"name": "d", "image": "x", "securityContext": self._security(container=True)}
            inner, body = random.choice(
                (
                    ("/resize", {"spec": {"containers": containers}}),
                    ("/ephemeralcontainers", {"spec": {"ephemeralContainers": [debugger]}}),
                    ("", {"metadata": {"labels": {"z": "y"}}}),
                    ("", {"spec": {"containers": [{"name": "c0", "image": "other"}]}}),
                )
            )
            yield request(
                "PATCH",
                f"{self.path}/{name}{inner}",
                "",
                body,
                content="application/strategic-merge-patch+json",
            )
        if random.random() < 0.5:
            yield request("DELETE", f"{self.path}/{name}", "gracePeriodSeconds=0")
