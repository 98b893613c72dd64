"""A `ClusterView` over lists of objects."""

from ipaddress import ip_address

from mockube.apimachinery import meta
from mockube.container_runtime.images.table import protocols_of
from tests.support.images import IMAGES


class NetworkCluster:
    """A cluster whose objects a test sets; it implements `ClusterView`."""

    def __init__(self, *, namespaces=("default",)):
        self.namespaces = {name: {"kubernetes.io/metadata.name": name} for name in namespaces}
        self.services = []
        self.endpoint_slices = []
        self.pods = []
        self.nodes = []
        self.network_policies = []
        self.all_ingresses = []
        self.controllers = {}
        self.node_rules = {}

    def add_service(self, name, namespace="default", *, endpoints=(), ports=None, **spec):
        """Add a Service with an EndpointSlice; an endpoint is an address, or the fields of one."""
        ports = [{"port": 80}] if ports is None else ports
        self.services.append(
            {"metadata": {"name": name, "namespace": namespace}, "spec": {"ports": ports, **spec}}
        )
        targets = [
            {
                "name": port.get("name"),
                "protocol": port.get("protocol", "TCP"),
                "port": port.get("to", port["port"]),
            }
            for port in ports
        ]
        fields = [entry if isinstance(entry, dict) else {"addresses": [entry]} for entry in endpoints]
        metadata = {
            "name": f"{name}-1",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        }
        self.endpoint_slices.append({"metadata": metadata, "endpoints": fields, "ports": targets})

    def add_pod(self, name, address, namespace="default", *, labels=None, ports=(), **spec):
        pod = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"{namespace}/{name}",
                "labels": labels or {},
            },
            "spec": {"containers": [{"name": "c", "image": "i", "ports": list(ports)}], **spec},
            "status": {"podIP": address},
        }
        self.pods.append(pod)
        return pod

    def namespace_labels(self, name):
        return self.namespaces.get(name)

    def service(self, namespace, name):
        return next(
            (s for s in self.services if (meta.namespace(s), meta.name(s)) == (namespace, name)), None
        )

    def services_at(self, address):
        return [service for service in self.services if address in _addresses(service)]

    def services_on_node_port(self, port):
        return [
            s
            for s in self.services
            if any(p.get("nodePort") == port for p in s["spec"].get("ports", ()))
            or s["spec"].get("healthCheckNodePort") == port
        ]

    def slices(self, namespace, service):
        return [
            tree
            for tree in self.endpoint_slices
            if meta.namespace(tree) == namespace
            and meta.labels(tree)["kubernetes.io/service-name"] == service
        ]

    def services_of_endpoint(self, address):
        return [
            (meta.namespace(tree), meta.labels(tree)["kubernetes.io/service-name"])
            for tree in self.endpoint_slices
            if any(address in endpoint["addresses"] for endpoint in tree["endpoints"])
        ]

    def rules_on(self, node):
        return self.node_rules.get(node, self)

    def pods_with_host_port(self, node, port):
        return [
            pod
            for pod in self.pods
            if pod["spec"].get("nodeName") == node
            and not pod["spec"].get("hostNetwork")
            and any(declared.get("hostPort") == port for declared in pod["spec"]["containers"][0]["ports"])
        ]

    def pods_that_speak(self, protocol):
        return [
            pod
            for pod in self.pods
            if any(protocol in protocols_of(IMAGES, each) for each in pod["spec"]["containers"])
        ]

    def pod_at(self, address):
        own = (pod for pod in self.pods if not pod["spec"].get("hostNetwork"))
        addresses = ((pod, pod["status"].get("podIPs") or [{"ip": pod["status"]["podIP"]}]) for pod in own)
        return next((pod for pod, entries in addresses if {"ip": address} in entries), None)

    def node_at(self, address):
        return next(
            (n for n in self.nodes if any(a["address"] == address for a in n["status"]["addresses"])), None
        )

    def zone_of(self, node):
        labels = next((meta.labels(n) for n in self.nodes if meta.name(n) == node), {})
        return labels.get("topology.kubernetes.io/zone", "")

    def pods_on_host(self, node):
        hosted = (pod for pod in self.pods if pod["spec"].get("hostNetwork"))
        return [pod for pod in hosted if pod["spec"].get("nodeName") == node]

    def pods_on_node(self, node):
        return [
            pod
            for pod in self.pods
            if pod["spec"].get("nodeName") == node and not pod["spec"].get("hostNetwork")
        ]

    def policies(self, namespace):
        return [policy for policy in self.network_policies if meta.namespace(policy) == namespace]

    def ingresses(self):
        return self.all_ingresses

    def ingress_controller(self, name):
        return self.controllers.get(name, "")


def _addresses(service):
    spec = service["spec"]
    balanced = service.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    listed = [*spec.get("clusterIPs", ()), spec.get("clusterIP"), *spec.get("externalIPs", ())]
    texts = [*listed, *(entry.get("ip") for entry in balanced)]
    return {str(ip_address(text)) for text in texts if text and text != "None"}
