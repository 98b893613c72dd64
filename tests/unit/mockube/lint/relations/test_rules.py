"""Each rule finds the mistakes that people make, and accepts what is right or what another program may provide."""

import pytest
import yaml

from mockube.apimachinery.groups import GroupKind
from mockube.importing.documents import parse
from mockube.lint.findings import Outcome
from mockube.lint.objects import object_of
from mockube.lint.relations.rules import RULE_NAMES, RULES, RelationOptions, find_problems

BROKEN, WARNED, NOTED = Outcome.BROKEN, Outcome.WARNED, Outcome.NOTED


def obj(kind, name="web", api="v1", *, namespace=None, labels=None, annotations=None, **fields):
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def container(**fields):
    return {"name": "main", "image": "i", "ports": [{"name": "http", "containerPort": 8080}], **fields}


def template(labels=None, *, containers=None, annotations=None, **spec):
    return {
        "metadata": {"labels": labels or {"app": "web"}, "annotations": annotations},
        "spec": {"containers": containers or [container()], **spec},
    }


def deployment(
    name="web", labels=None, *, namespace=None, annotations=None, kind="Deployment", **of_template
):
    return obj(
        kind,
        name,
        "apps/v1",
        namespace=namespace,
        annotations=annotations,
        spec={
            "selector": {"matchLabels": labels or {"app": "web"}},
            "template": template(labels, **of_template),
        },
    )


def with_container(name="web", **fields):
    return deployment(name, containers=[container(**fields)])


def service(name="web", selector=None, *, namespace=None, target="http", labels=None, port=80, **fields):
    ports = [{"port": port, "targetPort": target, **fields.pop("port_fields", {})}]
    spec = {"selector": {"app": "web"} if selector is None else selector, "ports": ports, **fields}
    return obj("Service", name, namespace=namespace, labels=labels, spec=spec)


def config_map(name="settings", namespace=None, data=None, **fields):
    return obj(
        "ConfigMap", name, namespace=namespace, data={"color": "blue"} if data is None else data, **fields
    )


def env(**source):
    return {"name": "V", "valueFrom": source}


def volume_pods(volume, **mount):
    return deployment(
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}])],
        volumes=[{"name": "v", **volume}],
    )


def ingress(*, service_name="web", **port):
    backend = {"service": {"name": service_name, "port": port or {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    return obj("Ingress", "web", "networking.k8s.io/v1", spec={"rules": [{"http": {"paths": paths}}]})


def autoscaler(target="web", kind="Deployment", metrics=None, api="apps/v1", **spec):
    reference = {"apiVersion": api, "kind": kind, "name": target}
    return obj(
        "HorizontalPodAutoscaler",
        "web",
        "autoscaling/v2",
        spec={"scaleTargetRef": reference, "maxReplicas": 3, "metrics": metrics or [utilization()], **spec},
    )


def utilization(resource="cpu", kind="Utilization"):
    target = (
        {"type": kind, "averageUtilization": 80}
        if kind == "Utilization"
        else {"type": kind, "averageValue": 1}
    )
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def requesting(**resources):
    return with_container(resources=resources or {"requests": {"cpu": "1"}})


def budget(selector, name="budget"):
    return obj("PodDisruptionBudget", name, "policy/v1", spec={"selector": selector, "maxUnavailable": 1})


def policy(*ingress_rules, selector=None, name="web", **spec):
    spec = {"podSelector": {"matchLabels": selector or {"app": "web"}}, "ingress": [*ingress_rules], **spec}
    return obj("NetworkPolicy", name, "networking.k8s.io/v1", spec=spec)


def egress(*rules):
    return policy(policyTypes=["Egress"], ingress=None, egress=[*rules])


def webhook(kind="ValidatingWebhookConfiguration", name="web", namespace="default", **port):
    client = {"service": {"name": name, "namespace": namespace, **port}}
    return obj(
        kind, "hook", "admissionregistration.k8s.io/v1", webhooks=[{"name": "a.b.c", "clientConfig": client}]
    )


def conversion(name):
    webhook_fields = {"clientConfig": {"service": {"name": name, "namespace": "default"}}}
    spec = {"group": "a.com", "conversion": {"strategy": "Webhook", "webhook": webhook_fields}}
    return obj("CustomResourceDefinition", "as.a.com", "apiextensions.k8s.io/v1", spec=spec)


def api_service(name, **port):
    spec = {"service": {"name": name, "namespace": "default", **port}}
    return obj("APIService", "v1.a.com", "apiregistration.k8s.io/v1", spec=spec)


def stateful_set(service_name="web", claims=(), **of_template):
    tree = deployment(kind="StatefulSet", **of_template)
    tree["spec"] |= {"serviceName": service_name, "volumeClaimTemplates": [*claims]}
    return tree


def binding(role="reader", kind="Role", subject="web", namespace=None, own_namespace=None, api="RoleBinding"):
    return obj(
        api,
        "web",
        "rbac.authorization.k8s.io/v1",
        namespace=own_namespace,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": subject, "namespace": namespace}],
    )


def role(name="reader", *resources, kind="Role", verbs=("create",), namespace=None):
    rules = [{"apiGroups": ["*"], "resources": [*resources], "verbs": [*verbs]}]
    return obj(kind, name, "rbac.authorization.k8s.io/v1", namespace=namespace, rules=rules)


def job(name="migrate", annotations=None, **of_template):
    spec = {"template": template(**of_template)}
    return obj("Job", name, "batch/v1", annotations=annotations, spec=spec)


def indexed_job():
    tree = job("web")
    tree["spec"] |= {"completionMode": "Indexed", "completions": 2}
    return tree


def two_ports(*names):
    tree = service()
    tree["spec"]["ports"] = [
        {"name": name, "port": 80 + index, "targetPort": name} for index, name in enumerate(names)
    ]
    return tree


def hook(phases, weight="0"):
    return {"helm.sh/hook": phases, "helm.sh/hook-weight": weight}


def cron_job(**of_template):
    spec = {"schedule": "@daily", "jobTemplate": {"spec": {"template": template(**of_template)}}}
    return obj("CronJob", "report", "batch/v1", spec=spec)


def custom(kind="Site", api="example.com/v1", **fields):
    return obj(kind, "custom", api, **fields)


def http(port, **fields):
    return {"httpGet": {"path": "/", "port": port, **fields}}


SETTINGS_KEY = env(configMapKeyRef={"name": "settings", "key": "colour"})
OTHER_KEY = env(configMapKeyRef={"name": "settings", "key": "color"})
CLAIM = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}

CLIENT = [
    deployment(),
    service(),
    deployment(
        "client", {"app": "client"}, containers=[container(env=[{"name": "URL", "value": "http://web:80/"}])]
    ),
]

JOB_LABELS = {"job-name": "web", "batch.kubernetes.io/job-name": "web", "controller-uid": "1"}
ADDED_LABELS = [
    (deployment(), {"pod-template-hash": "1", "topology.kubernetes.io/zone": "a"}),
    (deployment(kind="DaemonSet"), {"controller-revision-hash": "1", "pod-template-generation": "1"}),
    (
        stateful_set(service_name=None),
        {
            "apps.kubernetes.io/pod-index": "0",
            "controller-revision-hash": "web-1",
            "statefulset.kubernetes.io/pod-name": "web-0",
        },
    ),
    (job("web"), JOB_LABELS | {"batch.kubernetes.io/controller-uid": "1"}),
    (indexed_job(), {"batch.kubernetes.io/job-completion-index": "0"}),
    (cron_job(), {"job-name": "report-29000000", "batch.kubernetes.io/controller-uid": "1"}),
]
"""Workloads with labels that their pods get besides those of the templates."""

FOUND = {
    "probe-port": [
        (
            "of a name that no port has",
            [with_container(readinessProbe=http("htpp"))],
            'spec.template.spec.containers[0].readinessProbe.httpGet.port: container "main" has no port named "htpp": it has http',
        ),
        (
            "of a container without ports",
            [with_container(ports=[], livenessProbe={"tcpSocket": {"port": "http"}})],
            'container "main" has no port named "http": it has no named ports',
        ),
        (
            "of a port of another container",
            [
                deployment(
                    containers=[container(), {"name": "side", "image": "i", "startupProbe": http("http")}],
                )
            ],
            'container "side" has no port named "http": it is one of container "main"; name its number',
        ),
        (
            "of a UDP port",
            [
                with_container(
                    ports=[{"name": "dns", "containerPort": 53, "protocol": "UDP"}],
                    readinessProbe=http("dns"),
                )
            ],
            'port "dns" is one of UDP, and probes use TCP',
        ),
        (
            "of a handler of a sidecar of a CronJob",
            [
                cron_job(
                    initContainers=[
                        container(name="side", restartPolicy="Always", lifecycle={"preStop": http("stop")})
                    ]
                )
            ],
            "spec.jobTemplate.spec.template.spec.initContainers[0].lifecycle.preStop.httpGet.port: ",
        ),
        ("of a Pod", [obj("Pod", spec={"containers": [container(livenessProbe=http("x"))]})], 'named "x"'),
    ],
    "probe-undeclared-port": [
        (
            "of the default port of the protocol",
            [with_container(readinessProbe=http(80))],
            'container "main" does not declare port 80: it declares 8080',
        ),
        ("of swapped digits", [with_container(livenessProbe={"tcpSocket": {"port": 8008}})], "port 8008"),
        (
            "of a port that may be declared nowhere",
            [with_container(livenessProbe=http(9000))],
            "does not declare port 9000",
            WARNED,
        ),
    ],
    "probe-request": [
        (
            "of a path with a port",
            [with_container(livenessProbe=http(8080, path=":8080/healthz"))],
            'httpGet.path: ":8080/healthz" is not a path: the port has a field of its own',
        ),
        (
            "of HTTP on a port of HTTPS",
            [with_container(ports=[{"name": "https", "containerPort": 8443}], livenessProbe=http("https"))],
            'the probe uses HTTP, and port "https" is one of HTTPS: set scheme to HTTPS',
        ),
        (
            "of HTTP on the number of a port of HTTPS",
            [with_container(ports=[{"name": "https", "containerPort": 8443}], livenessProbe=http(8443))],
            "port 8443 is one of HTTPS",
        ),
    ],
    "service-selector": [
        (
            "of the pod of another StatefulSet",
            [stateful_set(), service(selector={"statefulset.kubernetes.io/pod-name": "wbe-0"})],
            "no pods of the files have statefulset.kubernetes.io/pod-name=wbe-0: those of statefulset.apps/web have statefulset.kubernetes.io/pod-name=web-*",
        ),
        (
            "of an index that a Deployment does not set",
            [deployment(), service(selector={"app": "web", "apps.kubernetes.io/pod-index": "0"})],
            "those of deployment.apps/web have no such label",
        ),
        (
            "with a misspelt label",
            [deployment("front", {"app": "frontend"}), service("entry", {"app": "fronted"})],
            "spec.selector: no pods of the files have app=fronted: those of deployment.apps/front have app=frontend",
        ),
        (
            "with the name of the workload",
            [deployment("web", {"app": "web"}), service("web", {"app": "nosuch"})],
            "no pods of the files have app=nosuch",
        ),
        (
            "with one label too many",
            [deployment("a", {"app": "web"}), service("b", {"app": "web", "track": "stable"})],
            "have track=stable: those of deployment.apps/a have no such label",
        ),
        (
            "of pods in another namespace",
            [deployment(namespace="shop"), service(namespace="other")],
            'the pods of deployment.apps/web are in namespace "shop", and not in "other"',
        ),
        (
            "with another value",
            [deployment("a", {"app": "blue"}), service("b", {"app": "yellow"})],
            "have app=yellow",
            WARNED,
        ),
        (
            "of a component that may be switched off",
            [
                deployment("a", {"app": "x", "app.kubernetes.io/component": "server"}),
                service("b", {"app": "x", "app.kubernetes.io/component": "worker"}),
            ],
            "have app.kubernetes.io/component=worker",
            WARNED,
        ),
        (
            "with the name of a workload beside an operator",
            [deployment("web"), service("web", {"app": "webb"}), role("r", "pods")],
            "have app=webb",
        ),
    ],
    "service-target-port": [
        (
            "of a name that no container has",
            [deployment(), service(target="web")],
            'spec.ports[0].targetPort: no container of deployment.apps/web has a port named "web": they have http',
        ),
        (
            "of a name that only an init container has",
            [
                deployment(
                    containers=[container(ports=[])],
                    initContainers=[container(name="init", ports=[{"name": "http", "containerPort": 1}])],
                ),
                service(),
            ],
            "they have no named ports",
        ),
        (
            "of another protocol",
            [deployment(), service(port_fields={"protocol": "UDP"})],
            'port "http" of deployment.apps/web is one of TCP, not UDP',
        ),
        (
            "of a misspelt name beside one that works",
            [deployment(), two_ports("http", "htpt")],
            'spec.ports[1].targetPort: no container of deployment.apps/web has a port named "htpt"',
        ),
        (
            "of another name beside one that works",
            [deployment(), two_ports("http", "metrics")],
            'spec.ports[1].targetPort: no container of deployment.apps/web has a port named "metrics"',
            WARNED,
        ),
    ],
    "service-undeclared-port": [
        (
            "of the number of the Service",
            [deployment(), service(target=80)],
            "spec.ports[0].targetPort: no container of deployment.apps/web declares port 80 (TCP): they declare 8080",
        ),
        ("without a target", [deployment(), service(target=None)], "spec.ports[0].port: "),
        (
            "beside a test and a Job with the same labels",
            [
                deployment(),
                service(target=80),
                job(containers=[container(ports=[])]),
                obj(
                    "Pod",
                    "t",
                    labels={"app": "web"},
                    annotations={"helm.sh/hook": "test"},
                    spec={"containers": [container(ports=[])]},
                ),
            ],
            "no container of deployment.apps/web declares port 80",
        ),
        (
            "of another protocol",
            [deployment(), service(target=8080, port_fields={"protocol": "UDP"})],
            "declares port 8080 (UDP)",
        ),
    ],
    "service-backend": [
        (
            "of a route with a kind in lower case",
            [
                obj(
                    "HTTPRoute",
                    api="gateway.networking.k8s.io/v1",
                    spec={"rules": [{"backendRefs": [{"kind": "service", "name": "web", "port": 80}]}]},
                )
            ],
            'spec.rules[0].backendRefs[0].kind: "service" is not a kind: it is written "Service"',
        ),
        (
            "of an Ingress with a port that the Service does not have",
            [ingress(number=8080), service()],
            'spec.rules[0].http.paths[0].backend.service.port.number: service "web" has no port 8080: it has 80',
        ),
        (
            "of an Ingress with the name of a port that has none",
            [ingress(name="http"), service()],
            'port.name: service "web" has no port named "http"',
        ),
        (
            "of an Ingress with a misspelt Service",
            [ingress(service_name="frontent"), service("frontend")],
            'service "frontent" is not in the files: did you mean "frontend"?',
        ),
        (
            "of an Ingress in another namespace",
            [ingress(), service(namespace="shop")],
            'service "web" is in namespace "shop", and not in "default"',
        ),
        (
            "of a default backend",
            [
                obj(
                    "Ingress",
                    "web",
                    "networking.k8s.io/v1",
                    spec={"defaultBackend": {"service": {"name": "web", "port": {"number": 1}}}},
                ),
                service(),
            ],
            "spec.defaultBackend.service.port.number",
        ),
        (
            "of a route",
            [
                obj(
                    "HTTPRoute",
                    "web",
                    "gateway.networking.k8s.io/v1",
                    spec={"rules": [{"backendRefs": [{"name": "web", "port": 81}]}]},
                ),
                service(),
            ],
            'spec.rules[0].backendRefs[0].port: service "web" has no port 81: it has 80',
        ),
        (
            "of a webhook with the default port",
            [webhook(), service()],
            'webhooks[0].clientConfig.service.port: service "web" has no port 443: it has 80',
        ),
        (
            "of a webhook in a wrong namespace",
            [webhook(namespace="shop"), service(port=443)],
            'service "web" is in namespace "default", and not in "shop"',
        ),
        (
            "of a conversion webhook",
            [conversion("converter"), service("convertor")],
            'did you mean "convertor"?',
        ),
        ("of an APIService", [api_service("web", port=4443), service(port=443)], "spec.service.port: "),
    ],
    "stateful-set-service": [
        (
            "with a misspelt name",
            [stateful_set("postgress"), service("postgres", clusterIP="None")],
            'spec.serviceName: service "postgress" is not in the files: did you mean "postgres"?',
        ),
        (
            "that selects other pods",
            [stateful_set("other"), service("other", {"app": "api"}), deployment("api", {"app": "api"})],
            'service "other" selects pods of deployment.apps/api, and not those of this StatefulSet',
        ),
    ],
    "data-key": [
        (
            "of a variable",
            [config_map(), with_container(env=[SETTINGS_KEY])],
            'spec.template.spec.containers[0].env[0].valueFrom.configMapKeyRef.key: configmap "settings" has no key "colour": did you mean "color"?',
        ),
        (
            "of a Secret with texts",
            [
                obj("Secret", "s", stringData={"password": "x"}),
                with_container(env=[env(secretKeyRef={"name": "s", "key": "pasword"})]),
            ],
            'secret "s" has no key "pasword": did you mean "password"?',
        ),
        (
            "of an item of a volume",
            [
                config_map(),
                volume_pods({"configMap": {"name": "settings", "items": [{"key": "a", "path": "b"}]}}),
            ],
            'volumes[0].configMap.items[0].key: configmap "settings" has no key "a": it has color',
        ),
        (
            "of a projected volume",
            [
                obj("Secret", "s", data={"a": "eA=="}),
                volume_pods(
                    {
                        "projected": {
                            "sources": [{"secret": {"name": "s", "items": [{"key": "b", "path": "b"}]}}]
                        }
                    }
                ),
            ],
            "volumes[0].projected.sources[0].secret.items[0].key",
        ),
        (
            "of an init container",
            [config_map(), deployment(initContainers=[container(env=[SETTINGS_KEY])])],
            "spec.template.spec.initContainers[0].env[0]",
        ),
    ],
    "sub-path": [
        (
            "of a ConfigMap",
            [config_map(), volume_pods({"configMap": {"name": "settings"}}, subPath="colors")],
            'volumeMounts[0].subPath: volume "v" has no file "colors": did you mean "color"?',
        ),
        (
            "of items with other paths",
            [
                obj("Secret", "s", data={"a": "eA=="}),
                volume_pods(
                    {"secret": {"secretName": "s", "items": [{"key": "a", "path": "a.txt"}]}}, subPath="a"
                ),
            ],
            'volume "v" has no file "a": it has a.txt',
        ),
    ],
    "volume-mount": [
        (
            "of a StatefulSet",
            [
                stateful_set(
                    claims=[CLAIM],
                    containers=[container(volumeMounts=[{"name": "date", "mountPath": "/data"}])],
                ),
                service(),
            ],
            'volumeMounts[0].name: neither a volume nor a claim template is named "date": did you mean "data"?',
        )
    ],
    "missing-data": [
        (
            "with a misspelt name",
            [config_map(), with_container(envFrom=[{"configMapRef": {"name": "setings"}}])],
            'envFrom[0].configMapRef.name: configmap "setings" is not in the files: did you mean "settings"?',
        ),
        (
            "in another namespace",
            [config_map(namespace="shop"), volume_pods({"configMap": {"name": "settings"}})],
            'configmap "settings" is in namespace "shop", and not in "default"',
        ),
        (
            "of a misspelt claim",
            [
                obj("PersistentVolumeClaim", "web-data", spec={}),
                volume_pods({"persistentVolumeClaim": {"claimName": "web-date"}}),
            ],
            'persistentVolumeClaim.claimName: persistentvolumeclaim "web-date" is not in the files: did you mean "web-data"?',
        ),
    ],
    "service-account": [
        (
            "of pods",
            [obj("ServiceAccount", "robot"), deployment(serviceAccountName="robots")],
            'spec.template.spec.serviceAccountName: serviceaccount "robots" is not in the files: did you mean "robot"?',
        ),
        (
            "of a subject in a wrong namespace",
            [
                obj("ServiceAccount", "web", namespace="shop"),
                binding(subject="web", namespace="other", role="edit", kind="ClusterRole"),
            ],
            'subjects[0].name: serviceaccount "web" is in namespace "shop", and not in "other"',
        ),
    ],
    "role": [
        (
            "with a misspelt name",
            [role("reader"), obj("ServiceAccount", "web"), binding("raeder")],
            'roleRef.name: role.rbac.authorization.k8s.io "raeder" is not in the files: did you mean "reader"?',
        ),
        (
            "in another namespace",
            [role("reader", namespace="shop"), binding("reader", own_namespace="other")],
            'is in namespace "shop", and not in "other"',
        ),
        (
            "of a cluster",
            [role("pod-reader", kind="ClusterRole"), binding("pods-reader", "ClusterRole")],
            'did you mean "pod-reader"?',
        ),
    ],
    "class": [
        (
            "of priority",
            [
                obj("PriorityClass", "important", "scheduling.k8s.io/v1"),
                deployment(priorityClassName="importent"),
            ],
            'spec.template.spec.priorityClassName: priorityclass.scheduling.k8s.io "importent" is not in the files: did you mean "important"?',
        ),
        (
            "of storage",
            [obj("StorageClass", "fasts", "storage.k8s.io/v1"), stateful_set(claims=[CLAIM]), service()],
            "spec.volumeClaimTemplates[0].spec.storageClassName",
        ),
        (
            "of a claim",
            [
                obj("StorageClass", "slow", "storage.k8s.io/v1"),
                obj("PersistentVolumeClaim", "data", spec={"storageClassName": "slwo"}),
            ],
            'did you mean "slow"?',
        ),
        (
            "of an Ingress",
            [
                obj("IngressClass", "internal", "networking.k8s.io/v1"),
                obj("Ingress", "a", "networking.k8s.io/v1", spec={"ingressClassName": "internel"}),
            ],
            'spec.ingressClassName: ingressclass.networking.k8s.io "internel"',
        ),
        (
            "of a runtime",
            [obj("RuntimeClass", "sandbox", "node.k8s.io/v1"), deployment(runtimeClassName="sandbx")],
            'did you mean "sandbox"?',
        ),
    ],
    "scale-target": [
        (
            "of a kind in lower case",
            [requesting(), autoscaler(kind="deployment")],
            'spec.scaleTargetRef.kind: "deployment" is not a kind: it is written "Deployment"',
        ),
        (
            "of a kind in the plural",
            [stateful_set(), service(), autoscaler(kind="statefulsets")],
            'spec.scaleTargetRef.kind: "statefulsets" is not a kind: it is written "StatefulSet"',
        ),
        (
            "of a misspelt kind without a group",
            [requesting(), autoscaler(kind="Deploment", api=None)],
            'spec.scaleTargetRef.kind: "Deploment" is not a kind: did you mean "Deployment"?',
        ),
        (
            "of a vertical autoscaler",
            [
                requesting(),
                obj(
                    "VerticalPodAutoscaler",
                    api="autoscaling.k8s.io/v1",
                    spec={"targetRef": {"apiVersion": "apps/v1", "kind": "deployment", "name": "web"}},
                ),
            ],
            'spec.targetRef.kind: "deployment" is not a kind: it is written "Deployment"',
        ),
        (
            "of a metric",
            [
                requesting(),
                autoscaler(
                    metrics=[
                        {
                            "type": "Object",
                            "object": {
                                "describedObject": {"apiVersion": "v1", "kind": "service", "name": "web"}
                            },
                        }
                    ]
                ),
            ],
            'spec.metrics[0].object.describedObject.kind: "service" is not a kind: it is written "Service"',
        ),
        (
            "with a misspelt name",
            [requesting(), deployment("backend"), autoscaler("backand")],
            'spec.scaleTargetRef.name: deployment.apps "backand" is not in the files: did you mean "backend"?',
        ),
        (
            "of another kind",
            [autoscaler(), stateful_set(), service()],
            'deployment.apps "web" is not in the files, which have statefulset.apps "web"',
        ),
        (
            "that is the only workload",
            [deployment("frontend"), autoscaler("app")],
            'deployment.apps "app" is not in the files: did you mean "frontend"?',
        ),
        (
            "without replicas",
            [autoscaler("web", "DaemonSet"), deployment(kind="DaemonSet")],
            'daemonset.apps "web" cannot be scaled: a DaemonSet has no replicas',
        ),
    ],
    "scale-requests": [
        (
            "of one container",
            [deployment(), autoscaler()],
            "spec.metrics[0].resource: container main of deployment.apps/web requests no cpu: its utilization is not known",
        ),
        (
            "of memory",
            [requesting(), autoscaler(metrics=[utilization(), utilization("memory")])],
            "spec.metrics[1].resource: container main of deployment.apps/web requests no memory",
        ),
        (
            "of some containers",
            [
                deployment(
                    containers=[
                        container(resources={"requests": {"cpu": 1}}),
                        {"name": "side", "image": "i"},
                    ],
                ),
                autoscaler(),
            ],
            "container side of",
        ),
    ],
    "budget-selector": [
        (
            "with a misspelt label",
            [deployment(labels={"app": "backend"}), budget({"matchLabels": {"app": "bakend"}})],
            "spec.selector: no pods of the files have app=bakend",
        ),
        (
            "of a component that may be switched off",
            [
                deployment("a", {"app": "x", "component": "server"}),
                budget({"matchLabels": {"app": "x", "component": "worker"}}),
            ],
            "have component=worker",
            NOTED,
        ),
    ],
    "policy-selector": [
        (
            "with a misspelt label",
            [deployment(labels={"app": "backend"}), policy({}, selector={"app": "bakend"})],
            "spec.podSelector: no pods of the files have app=bakend",
        )
    ],
    "policy-port": [
        (
            "of the Service instead of the pods",
            [deployment(), service(), policy({"ports": [{"port": 80}]})],
            "spec.ingress: no rule admits port http (TCP) of deployment.apps/web, to which service/web sends",
        ),
        (
            "of another protocol",
            [deployment(), service(target=8080), policy({"ports": [{"port": 8080, "protocol": "UDP"}]})],
            "no rule admits port 8080 (TCP)",
        ),
        (
            "outside of a range",
            [deployment(), service(), policy({"ports": [{"port": 8000, "endPort": 8079}]})],
            "no rule admits port http",
        ),
        (
            "of an Ingress that comes from another namespace",
            [deployment(), service(), ingress(), policy({"from": [{"podSelector": {}}]})],
            "only pods of this namespace may send to port http of deployment.apps/web, and service/web gets requests from outside",
            WARNED,
        ),
    ],
    "policy-peer": [
        (
            "of a rule",
            [
                deployment(),
                deployment("front", {"app": "front"}),
                policy({"from": [{"podSelector": {"matchLabels": {"app": "fornt"}}}]}),
            ],
            "spec.ingress[0].from[0].podSelector: no pods of the files have app=fornt: those of deployment.apps/front have app=front",
        )
    ],
    "policy-client": [
        (
            "of other pods",
            [*CLIENT, policy({"from": [{"podSelector": {"matchLabels": {"app": "batch"}}}]})],
            "spec.ingress: the pods of deployment.apps/client may not send to port http of service/web, whose address they have",
        ),
        (
            "with egress to another port",
            [
                *CLIENT,
                policy(
                    selector={"app": "client"},
                    policyTypes=["Egress"],
                    ingress=None,
                    egress=[{"ports": [{"port": 80}]}],
                ),
            ],
            "spec.egress: the pods of deployment.apps/client may not send to port http of service/web, whose address they have",
        ),
    ],
    "service-address": [
        (
            "of a variable",
            [service(port=80), with_container("client", env=[{"name": "URL", "value": "http://web:8080/a"}])],
            "spec.template.spec.containers[0].env[0].value: service/web has no port 8080: it has 80",
        ),
        (
            "of an argument with a namespace",
            [service(namespace="shop"), with_container(args=["wget", "web.shop.svc.cluster.local:8080"])],
            "containers[0].args[1]: service/web has no port 8080",
        ),
    ],
    "secret": [
        (
            "of a certificate",
            [
                obj("Secret", "web-tls"),
                obj("Ingress", "a", "networking.k8s.io/v1", spec={"tls": [{"secretName": "web-tsl"}]}),
            ],
            'spec.tls[0].secretName: secret "web-tsl" is not in the files: did you mean "web-tls"?',
        )
    ],
    "policy-dns": [
        (
            "to one port only",
            [deployment(), egress({"ports": [{"port": 5432}]})],
            "spec.egress: the pods of deployment.apps/web cannot look up names of Services: no rule admits port 53 (UDP)",
        )
    ],
    "duplicate": [
        (
            "with another content",
            [config_map(), config_map(data={"color": "red"})],
            "metadata.name: configmap/settings is in files.yaml:1 too: this one replaces it",
            WARNED,
        )
    ],
    "external-data": [
        (
            "of a Secret",
            [with_container(envFrom=[{"secretRef": {"name": "credentials"}}])],
            'secret "credentials" in namespace "default" is not in the files: the cluster must have it',
        ),
        (
            "of a claim",
            [volume_pods({"persistentVolumeClaim": {"claimName": "data"}})],
            'persistentvolumeclaim "data" in namespace "default"',
        ),
    ],
    "external-object": [
        (
            "of an account",
            [deployment(serviceAccountName="robot")],
            'serviceaccount "robot" in namespace "default" is not in the files',
        ),
        (
            "of a class",
            [deployment(priorityClassName="gold")],
            'priorityclass.scheduling.k8s.io "gold" is not in the files: the cluster must have it',
        ),
        (
            "of a certificate",
            [obj("Ingress", "a", "networking.k8s.io/v1", spec={"tls": [{"secretName": "certificate"}]})],
            "spec.tls[0].secretName",
        ),
        ("of images", [deployment(imagePullSecrets=[{"name": "registry"}])], 'secret "registry"'),
    ],
    "external-service": [
        ("of an Ingress", [ingress()], 'service "web" in namespace "default" is not in the files')
    ],
}
"""By rule: a name, the objects, a part of the message, and the outcome if it is not the rule's."""

ACCEPTED = {
    "probe-port": [
        ("of a port of the container", [with_container(readinessProbe=http("http"))]),
        ("of a number", [with_container(readinessProbe=http(8080), livenessProbe=http("8080"))]),
        ("of an init container's own command", [deployment(initContainers=[container(ports=[])])]),
        (
            "of a custom resource whose operator adds containers",
            [custom(spec={"template": template(containers=[container(livenessProbe=http("added"))])})],
        ),
    ],
    "probe-undeclared-port": [
        ("of a container without ports", [with_container(ports=[], livenessProbe=http(80))]),
        (
            "of a port of another container",
            [
                deployment(
                    containers=[
                        container(livenessProbe=http(9)),
                        container(name="b", ports=[{"containerPort": 9}]),
                    ]
                )
            ],
        ),
        ("of a port in an argument", [with_container(args=["--health-port=8081"], livenessProbe=http(8081))]),
        (
            "of a port in a variable",
            [with_container(env=[{"name": "A", "value": ":80"}], livenessProbe=http(80))],
        ),
        ("of another host", [with_container(livenessProbe=http(80, host="10.0.0.1"))]),
        ("of a mesh", [with_container(image="auto", livenessProbe=http(80))]),
    ],
    "probe-request": [
        ("of a path", [with_container(livenessProbe=http("http", path="/healthz?full=1:2"))]),
        (
            "of HTTPS",
            [
                with_container(
                    ports=[{"name": "https", "containerPort": 8443}],
                    livenessProbe=http("https", scheme="HTTPS"),
                )
            ],
        ),
    ],
    "service-selector": [
        *(
            (f"of {key} of a {workload['kind']}", [workload, service(selector={"app": "web", key: value})])
            for workload, labels in ADDED_LABELS
            for key, value in labels.items()
        ),
        ("of the pods", [deployment(), service()]),
        ("without a selector", [deployment(), service(selector={})]),
        (
            "of a name outside",
            [deployment(), service("web", {"app": "x"}, type="ExternalName", externalName="a.b")],
        ),
        ("in files without pods", [service()]),
        (
            "in a namespace without pods",
            [deployment(), service("dns", {"k8s-app": "kube-dns"}, namespace="kube-system")],
        ),
        (
            "of an operator's pods",
            [
                deployment("operator", {"app": "operator"}),
                service("db", {"app": "db"}),
                role("r", "statefulsets"),
            ],
        ),
        (
            "of a custom resource's pods",
            [deployment("a", {"app": "a"}), custom(), service("db", {"app": "db"})],
        ),
        ("of an unknown label", [deployment(), service("other", {"role": "master"})]),
        (
            "of a template in a custom resource",
            [custom(spec={"jobs": {"template": template({"app": "web"})}}), service()],
        ),
    ],
    "service-target-port": [
        ("of a name", [deployment(), service()]),
        (
            "of a sidecar",
            [
                deployment(
                    containers=[container(ports=[])],
                    initContainers=[container(name="s", restartPolicy="Always")],
                ),
                service(),
            ],
        ),
        (
            "of some of the pods",
            [deployment(), deployment("old", containers=[container(ports=[])]), service()],
        ),
        ("of a mesh", [deployment(containers=[container(image="auto", ports=[])]), service()]),
    ],
    "service-undeclared-port": [
        ("of a declared number", [deployment(), service(target=8080)]),
        ("of pods without ports", [with_container(ports=[]), service(target=80)]),
        (
            "of a port in an argument",
            [with_container(command=["serve", "--listen", ":80"]), service(target=80)],
        ),
        ("of a headless Service for names", [deployment(), service(target=None, clusterIP="None")]),
    ],
    "service-backend": [
        ("of a number", [ingress(), service()]),
        ("of a name", [ingress(name="http"), service(port_fields={"name": "http"})]),
        ("of a webhook", [webhook(port=80), service()]),
        ("of another chart", [ingress(service_name="grafana"), service()]),
        ("of an ExternalName", [ingress(number=1), service(type="ExternalName", externalName="a.b")]),
        (
            "of a resource",
            [
                obj(
                    "Ingress",
                    "web",
                    "networking.k8s.io/v1",
                    spec={"defaultBackend": {"resource": {"kind": "Bucket", "name": "b"}}},
                )
            ],
        ),
        ("of the API server", [api_service("kubernetes", port=443)]),
        ("of no service", [obj("APIService", "v1.a.com", "apiregistration.k8s.io/v1", spec={})]),
    ],
    "stateful-set-service": [
        ("of the pods", [stateful_set(), service()]),
        ("without one", [stateful_set("")]),
        ("of a cluster", [stateful_set("other"), service()]),
    ],
    "data-key": [
        ("that exists", [config_map(), with_container(env=[OTHER_KEY])]),
        (
            "that is optional",
            [
                config_map(),
                with_container(env=[env(configMapKeyRef={"name": "settings", "key": "x", "optional": True})]),
            ],
        ),
        ("of an object that is filled later", [config_map(data={}), with_container(env=[SETTINGS_KEY])]),
        (
            "of a Secret for a token",
            [
                obj("Secret", "s", type="kubernetes.io/service-account-token", data={"a": ""}),
                with_container(env=[env(secretKeyRef={"name": "s", "key": "token"})]),
            ],
        ),
        ("of binary data", [config_map(binaryData={"colour": "eA=="}), with_container(env=[SETTINGS_KEY])]),
        (
            "of an optional volume",
            [
                config_map(),
                volume_pods(
                    {
                        "configMap": {
                            "name": "settings",
                            "optional": True,
                            "items": [{"key": "a", "path": "b"}],
                        }
                    }
                ),
            ],
        ),
        (
            "that a cluster injects",
            [
                config_map(labels={"config.openshift.io/inject-trusted-cabundle": "true"}),
                with_container(env=[SETTINGS_KEY]),
            ],
        ),
    ],
    "sub-path": [
        ("that is a key", [config_map(), volume_pods({"configMap": {"name": "settings"}}, subPath="color")]),
        (
            "that is a folder of items",
            [
                config_map(),
                volume_pods(
                    {"configMap": {"name": "settings", "items": [{"key": "color", "path": "a/b"}]}},
                    subPath="a",
                ),
            ],
        ),
        ("of another volume", [volume_pods({"emptyDir": {}}, subPath="x")]),
        ("of a ConfigMap of the cluster", [volume_pods({"configMap": {"name": "other"}}, subPath="x")]),
    ],
    "volume-mount": [
        (
            "of a claim template",
            [
                stateful_set(
                    claims=[CLAIM], containers=[container(volumeMounts=[{"name": "data", "mountPath": "/d"}])]
                ),
                service(),
            ],
        )
    ],
    "missing-data": [
        ("of the files", [config_map(), with_container(envFrom=[{"configMapRef": {"name": "settings"}}])]),
        (
            "of another name",
            [config_map("web-config"), with_container(envFrom=[{"configMapRef": {"name": "db-config"}}])],
        ),
        (
            "that is optional",
            [config_map(), with_container(envFrom=[{"configMapRef": {"name": "setings", "optional": True}}])],
        ),
        (
            "that a custom resource makes",
            [
                config_map("web-cert"),
                custom("Certificate", "cert-manager.io/v1", spec={"secretName": "web-certs"}),
                with_container(envFrom=[{"secretRef": {"name": "web-certs"}}]),
            ],
        ),
        ("that every namespace has", [volume_pods({"configMap": {"name": "kube-root-ca.crt"}})]),
        (
            "of a volume that a claim template of the same name replaces",
            [
                obj("PersistentVolumeClaim", "web", spec={}),
                stateful_set(
                    claims=[CLAIM],
                    volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "wbe"}}],
                ),
                service(),
            ],
        ),
        (
            "of a StatefulSet's claim",
            [
                obj("PersistentVolumeClaim", "data-web-1", spec={}),
                stateful_set(claims=[CLAIM]),
                service(),
                volume_pods({"persistentVolumeClaim": {"claimName": "data-web-0"}}),
            ],
        ),
    ],
    "service-account": [
        ("of the files", [obj("ServiceAccount", "robot"), deployment(serviceAccountName="robot")]),
        ("of every namespace", [obj("ServiceAccount", "defaults"), deployment(serviceAccountName="default")]),
    ],
    "role": [
        (
            "of every cluster",
            [
                binding("extension-apiserver-authentication-reader", own_namespace="kube-system"),
                role("extension"),
            ],
        ),
        ("of the files", [role("reader"), obj("ServiceAccount", "web"), binding("reader")]),
        (
            "of every cluster",
            [binding("cluster-admin", "ClusterRole"), role("cluster-admins", kind="ClusterRole")],
        ),
        ("of the system", [binding("system:auth-delegator", "ClusterRole")]),
    ],
    "class": [
        (
            "of every cluster",
            [
                obj("PriorityClass", "system-cluster-criticals", "scheduling.k8s.io/v1"),
                deployment(priorityClassName="system-cluster-critical"),
            ],
        ),
        (
            "of this cluster",
            [
                obj("StorageClass", "fast", "storage.k8s.io/v1"),
                obj("PersistentVolumeClaim", "d", spec={"storageClassName": "gp3"}),
            ],
        ),
    ],
    "scale-target": [
        ("of a kind of an older version", [requesting(), autoscaler(api="extensions/v1beta1")]),
        ("of the files", [requesting(), autoscaler()]),
        ("of a custom kind", [deployment("a"), autoscaler("site", "Site", api="example.com/v1")]),
        ("beside several workloads", [deployment("a"), deployment("b"), autoscaler("other")]),
        ("of an operator", [deployment("operator"), role("r", "deployments"), autoscaler("site")]),
    ],
    "scale-requests": [
        ("that are set", [requesting(), autoscaler()]),
        ("that limits set", [requesting(limits={"cpu": 1}), autoscaler()]),
        ("of values", [deployment(), autoscaler(metrics=[utilization(kind="AverageValue")])]),
        ("that a LimitRange sets", [deployment(), autoscaler(), obj("LimitRange", "l", spec={"limits": []})]),
        ("of the pod", [deployment(resources={"requests": {"cpu": 1}}), autoscaler()]),
    ],
    "budget-selector": [
        ("of the pods", [deployment(), budget({"matchLabels": {"app": "web"}})]),
        ("of all pods", [deployment(), budget({})]),
        (
            "of an expression",
            [deployment(), budget({"matchExpressions": [{"key": "app", "operator": "Exists"}]})],
        ),
        (
            "that is invalid",
            [deployment(), budget({"matchExpressions": [{"key": "app", "operator": "Has"}]})],
        ),
    ],
    "policy-selector": [
        ("of the pods", [deployment(), policy({})]),
        ("of all pods", [policy({}), obj("Pod", "p", spec={})]),
    ],
    "policy-port": [
        (
            "of one of two workloads, of which each has one of the ports",
            [
                deployment(),
                deployment(
                    "mail", containers=[container(ports=[{"name": "metrics", "containerPort": 9090}])]
                ),
                two_ports("http", "metrics"),
                policy({"ports": [{"port": "http"}]}),
                policy({"ports": [{"port": "metrics"}]}, name="mail"),
            ],
        ),
        (
            "of a policy that selects one of two workloads",
            [
                deployment(labels={"app": "web", "part": "front"}),
                deployment(
                    "mail", containers=[container(ports=[{"name": "metrics", "containerPort": 9090}])]
                ),
                two_ports("http", "metrics"),
                policy({"ports": [{"port": "http"}]}, selector={"part": "front"}),
            ],
        ),
        (
            "of UDP, which the pods have as TCP only",
            [
                deployment(),
                service(port_fields={"protocol": "UDP"}),
                policy({"ports": [{"port": 9090}]}),
            ],
        ),
        ("of the pods", [deployment(), service(), policy({"ports": [{"port": 8080}]})]),
        ("of a name", [deployment(), service(target=8080), policy({"ports": [{"port": "http"}]})]),
        ("of a range", [deployment(), service(), policy({"ports": [{"port": 8000, "endPort": 8090}]})]),
        ("of all ports", [deployment(), service(), ingress(), policy({})]),
        (
            "of several policies",
            [
                deployment(),
                service(),
                policy({"ports": [{"port": 9}]}),
                policy({"ports": [{"port": 8080}]}, name="b"),
            ],
        ),
        ("of pods that are isolated", [deployment(), service(), policy()]),
        (
            "of other pods",
            [
                deployment(),
                service(),
                policy({"ports": [{"port": 9}]}, selector={"app": "db"}),
                deployment("db", {"app": "db"}),
            ],
        ),
        ("of egress", [deployment(), service(), egress({})]),
        (
            "of other namespaces",
            [deployment(), service(), ingress(), policy({"from": [{"namespaceSelector": {}}]})],
        ),
    ],
    "policy-peer": [
        ("of the pods", [deployment(), policy({"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]})]),
        (
            "of clients of other charts",
            [deployment(), policy({"from": [{"podSelector": {"matchLabels": {"web-client": "true"}}}]})],
        ),
    ],
    "policy-client": [
        (
            "of a port that the pods of the policy do not have",
            [
                *CLIENT,
                deployment(
                    "mail",
                    {"app": "web", "part": "mail"},
                    containers=[container(ports=[{"name": "metrics", "containerPort": 9090}])],
                ),
                policy({"ports": [{"port": "metrics"}]}, selector={"part": "mail"}),
            ],
        ),
        ("of all pods", [*CLIENT, policy({"from": [{"podSelector": {}}]})]),
        (
            "of the pods",
            [
                *CLIENT,
                policy(
                    {"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": 8080}]}
                ),
            ],
        ),
        ("of other namespaces", [*CLIENT, policy({"from": [{"namespaceSelector": {}}]})]),
        (
            "to the port of the pods",
            [
                *CLIENT,
                policy(
                    selector={"app": "client"},
                    policyTypes=["Egress"],
                    ingress=None,
                    egress=[{"ports": [{"port": 8080}]}],
                ),
            ],
        ),
        (
            "without the address",
            [deployment(), service(), policy({"from": [{"podSelector": {"matchLabels": {"app": "x"}}}]})],
        ),
    ],
    "service-address": [
        ("of a port", [service(), with_container(env=[{"name": "URL", "value": "http://user:pass@web:80"}])]),
        ("of a headless Service", [service(clusterIP="None"), with_container(args=["web:5432"])]),
        (
            "of another host",
            [
                service(),
                with_container(
                    args=["web.example.com:8080", "my-web:8080", "x/web:8080", "web:17", "web:8080-alpine"]
                ),
            ],
        ),
        ("without a port", [service(), with_container(args=["http://web/"])]),
    ],
    "secret": [
        (
            "of the files",
            [
                obj("Secret", "tls"),
                obj("Ingress", "a", "networking.k8s.io/v1", spec={"tls": [{"secretName": "tls"}]}),
            ],
        ),
    ],
    "policy-dns": [
        (
            "with names",
            [deployment(), egress({"ports": [{"port": 5432}]}, {"ports": [{"port": 53, "protocol": "UDP"}]})],
        ),
        (
            "to addresses",
            [deployment(), egress({"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 1}]})],
        ),
        ("to nothing", [deployment(), egress()]),
        ("to everything", [deployment(), egress({})]),
    ],
    "duplicate": [
        ("with the same content", [config_map(), config_map()]),
        ("in another namespace", [config_map(), config_map(namespace="shop", data={"a": "b"})]),
        (
            "of a generated name",
            [
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}, "spec": {"x": n}}
                for n in (1, 2)
            ],
        ),
    ],
    "external-data": [
        ("of the files", [config_map(), with_container(envFrom=[{"configMapRef": {"name": "settings"}}])]),
        ("that is optional", [with_container(envFrom=[{"secretRef": {"name": "x", "optional": True}}])]),
        (
            "that the files can create",
            [role("r", "secrets"), with_container(envFrom=[{"secretRef": {"name": "x"}}])],
        ),
    ],
    "external-object": [
        (
            "of every cluster",
            [deployment(serviceAccountName="default", priorityClassName="system-node-critical")],
        ),
        (
            "of a certificate that is requested",
            [
                obj(
                    "Ingress",
                    "a",
                    "networking.k8s.io/v1",
                    annotations={"cert-manager.io/issuer": "x"},
                    spec={"tls": [{"secretName": "c"}]},
                )
            ],
        ),
    ],
    "external-service": [("of the files", [ingress(), service()])],
}

OF_CHARTS = {
    "budget-selector": [
        (
            "with labels that no pods of the chart have",
            [deployment("a"), budget({"matchLabels": {"name": "web"}})],
            "have name=web: those of deployment.apps/a have no such label",
            WARNED,
        )
    ],
    "missing-data": [
        (
            "with the name of the release",
            [config_map("shop-web-settings"), volume_pods({"secret": {"secretName": "shop-web"}})],
            'secret "shop-web" has the name of the release, and the chart does not create it',
        ),
        (
            "without the name of the release",
            [config_map("shop-web"), with_container(envFrom=[{"configMapRef": {"name": "web"}}])],
            'did you mean "shop-web"?',
        ),
    ],
    "job-wait": [("that is no hook", [job()], "helm --wait does not wait for this Job: use --wait-for-jobs")],
    "hook-order": [
        (
            "of a ConfigMap that is no hook",
            [
                config_map(),
                job(annotations=hook("pre-install,pre-upgrade"), containers=[container(env=[OTHER_KEY])]),
            ],
            'env[0].valueFrom.configMapKeyRef.key: configmap "settings" does not exist yet: helm creates it after its hooks of pre-install',
        ),
        (
            "of an account that is no hook",
            [
                obj("ServiceAccount", "robot"),
                job(annotations=hook("pre-install"), serviceAccountName="robot"),
            ],
            'serviceaccount "robot" does not exist yet',
        ),
        (
            "of a later weight",
            [
                config_map(annotations=hook("pre-install", "5")),
                job(annotations=hook("pre-install", "-5"), containers=[container(env=[OTHER_KEY])]),
            ],
            "helm creates it in its hooks of pre-install",
        ),
        (
            "of a hook after the installation",
            [config_map(annotations=hook("post-install")), with_container(env=[OTHER_KEY])],
            "helm creates it in its hooks of post-install",
            WARNED,
        ),
    ],
    "duplicate": [
        ("of equal objects", [config_map(), config_map()], "helm cannot create two objects of one name")
    ],
    "role": [
        (
            "that is not rendered",
            [binding("shop-web")],
            'role.rbac.authorization.k8s.io "shop-web" has the name',
        )
    ],
}
"""The same, for objects that a chart renders for the release `shop`."""

ACCEPTED_OF_CHARTS = {
    "missing-data": [
        (
            "that a Job of the chart creates",
            [role("r", "secrets"), volume_pods({"secret": {"secretName": "shop-tls"}})],
        ),
    ],
    "job-wait": [("that is a hook", [job(annotations=hook("post-install"))]), ("of a CronJob", [cron_job()])],
    "hook-order": [
        (
            "of an earlier weight",
            [
                config_map(annotations=hook("pre-install", "-1")),
                job(annotations=hook("pre-install"), containers=[container(env=[OTHER_KEY])]),
            ],
        ),
        (
            "of a hook after the installation",
            [config_map(), job(annotations=hook("post-install"), containers=[container(env=[OTHER_KEY])])],
        ),
        (
            "of an upgrade",
            [config_map(), job(annotations=hook("pre-upgrade"), containers=[container(env=[OTHER_KEY])])],
        ),
    ],
    "duplicate": [
        ("of hooks", [job(annotations=hook("pre-install")), job(annotations=hook("post-install"))])
    ],
    "service-account": [
        (
            "of a chart for another namespace",
            [obj("ServiceAccount", "robot", namespace="system"), deployment(serviceAccountName="robot")],
        ),
    ],
}


def problems(trees, *, release="", namespace="", disabled=(), packs=()):
    """Return the findings of objects in one file, or rendered by a chart if there is a release."""
    text = yaml.safe_dump_all(trees).encode()
    chart = "web" if release else ""
    items = [object_of(parsed, file="files.yaml", chart=chart) for parsed in parse(text, "files.yaml")]
    options = RelationOptions(namespace=namespace, release=release, disabled=disabled)
    return [finding for findings in find_problems(items, options, packs).values() for finding in findings]


def _cases(table):
    return [
        pytest.param(rule, *case[1:], id=f"{rule} {case[0]}")
        for rule, cases in table.items()
        for case in cases
    ]


def _parts(case):
    trees, message, *outcome = case
    return trees, message, outcome[0] if outcome else None


@pytest.mark.parametrize(
    ("rule", "case"), [pytest.param(r, c[1:], id=f"{r} {c[0]}") for r, cs in FOUND.items() for c in cs]
)
def test_mistake_is_found(rule, case):
    check_found(rule, *_parts(case))


@pytest.mark.parametrize(
    ("rule", "case"), [pytest.param(r, c[1:], id=f"{r} {c[0]}") for r, cs in OF_CHARTS.items() for c in cs]
)
def test_mistake_in_chart_is_found(rule, case):
    check_found(rule, *_parts(case), release="shop")


def check_found(rule, trees, message, outcome, **options):
    found = [each for each in problems(trees, **options) if each.rule == rule]
    assert [each for each in found if message in each.message], found
    expected = outcome or next(each.outcome for each in RULES if each.name == rule)
    assert {each.outcome for each in found} == {expected}
    assert problems(trees, **options, disabled=[rule]) != found


@pytest.mark.parametrize(("rule", "trees"), _cases(ACCEPTED))
def test_right_objects_are_accepted(rule, trees):
    assert [each for each in problems(trees) if each.rule == rule] == []


@pytest.mark.parametrize(("rule", "trees"), _cases(ACCEPTED_OF_CHARTS))
def test_right_chart_is_accepted(rule, trees):
    assert [each for each in problems(trees, release="shop") if each.rule == rule] == []


def test_each_rule_has_mistakes_and_right_objects():
    assert {*FOUND, *OF_CHARTS} == {*ACCEPTED, *ACCEPTED_OF_CHARTS} == {*RULE_NAMES}


def test_rule_that_is_ignored_by_object_finds_nothing():
    trees = [deployment(), service(target="web")]
    assert [each.rule for each in problems(trees)] == ["service-target-port"]
    for value in ("service-target-port", "data-key, service-target-port", "all"):
        trees[1]["metadata"]["annotations"] = {"lint.mockube.dev/ignore": value}
        assert problems(trees) == []


def test_rules_are_off_if_they_are_disabled():
    trees = [deployment(), service(target="web")]
    assert problems(trees, disabled=["service-target-port"]) == problems(trees, disabled=["all"]) == []


def test_pods_of_pack_are_checked_as_its_kind_creates_them():
    clone_set = custom(
        "CloneSet",
        "apps.kruise.io/v1alpha1",
        spec={"template": template(containers=[container(livenessProbe=http("x"))])},
    )
    assert problems([clone_set]) == []
    found = problems([clone_set], packs={GroupKind("apps.kruise.io", "CloneSet")})
    assert [each.field for each in found] == ["spec.template.spec.containers[0].livenessProbe.httpGet.port"]


def test_pods_of_rollout_are_checked():
    rollout = custom("Rollout", "argoproj.io/v1alpha1", spec={"template": template()})
    assert [each.rule for each in problems([rollout, service(target="web")])] == ["service-target-port"]


def test_namespace_that_user_names_decides_where_charts_objects_are():
    trees = [obj("ServiceAccount", "robot", namespace="system"), deployment(serviceAccountName="robot")]
    assert [each.outcome for each in problems(trees, release="shop")] == [NOTED]
    assert [each.outcome for each in problems(trees, release="shop", namespace="shop")] == [BROKEN]
    assert problems(trees, release="shop", namespace="system") == []


@pytest.mark.parametrize(
    "tree",
    [
        obj("Deployment", api="apps/v1", spec=None),
        obj("Deployment", api="apps/v1", spec={"template": [1]}),
        obj("Deployment", api="apps/v1", spec={"template": {"spec": {"containers": [{"ports": "80"}]}}}),
        obj("Service", spec={"selector": {"app": 1}, "ports": {"a": 1}}),
        obj("Secret", data="x"),
        obj("NetworkPolicy", api="networking.k8s.io/v1", spec={"ingress": [None], "podSelector": 3}),
        obj("HorizontalPodAutoscaler", api="autoscaling/v2", spec={"metrics": [1], "scaleTargetRef": "a"}),
        obj("Role", api="rbac.authorization.k8s.io/v1", rules=[{"verbs": None}, None]),
        obj("CustomResourceDefinition", "a", "apiextensions.k8s.io/v1", spec=[]),
        obj("Site", api="a.b/v1", spec={"containers": [{"spec": {"containers": [3]}}]}),
        obj("Job", api="batch/v1", annotations={"helm.sh/hook": 3, "lint.mockube.dev/ignore": 4}, spec={}),
        {"apiVersion": "v1", "kind": "Pod", "metadata": []},
        {"apiVersion": "v1", "kind": "Pod"},
    ],
    ids=lambda tree: tree["kind"],
)
def test_fields_of_wrong_types_are_left_to_servers(tree):
    assert problems([tree, tree], release="shop") == problems([tree, tree], release="shop")


def test_objects_of_one_name_in_two_files_may_be_alternatives():
    texts = {
        f"deploy/{name}.yaml": yaml.safe_dump(config_map(data={"cloud": name})).encode()
        for name in ("aws", "gce")
    }
    items = [object_of(parsed, file=file) for file, text in texts.items() for parsed in parse(text, file)]
    found = find_problems(items, RelationOptions(namespace="", release=""))
    assert [(each.rule, each.outcome) for each in found[id(items[1])]] == [("duplicate", NOTED)]


def test_labels_of_another_folder_are_not_those_that_selector_means():
    trees = {
        "a/pods.yaml": deployment("a", {"app": "blue"}),
        "b/service.yaml": service("b", {"app": "yellow"}),
    }
    items = [
        object_of(parsed, file=file)
        for file, tree in trees.items()
        for parsed in parse(yaml.safe_dump(tree).encode(), file)
    ]
    assert find_problems(items, RelationOptions(namespace="", release="")) == {}
