"""The work of an administrator on a control-plane node: kubectl there, and a snapshot of etcd that is saved and restored."""

from mockube import Cluster
from tests.support.node_shell import on_node
from tests.support.processes.acknowledged_writes import until

ETCDCTL = (
    "export ETCDCTL_CACERT=/etc/kubernetes/pki/etcd/ca.crt ETCDCTL_CERT=/etc/kubernetes/pki/etcd/server.crt "
    "ETCDCTL_KEY=/etc/kubernetes/pki/etcd/server.key; etcdctl"
)
MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"


def test_administrator_restores_a_snapshot_of_etcd():
    with Cluster(profile="kubeadm", nodes=0) as cluster:
        assert "control-plane-1   Ready" in on_node(cluster, "kubectl get nodes")
        on_node(cluster, "kubectl create namespace before")
        assert "Snapshot saved at /opt/b.db" in on_node(cluster, f"{ETCDCTL} snapshot save /opt/b.db")
        on_node(cluster, "kubectl create namespace after")
        on_node(cluster, "etcdutl snapshot restore /opt/b.db --data-dir /var/lib/restored")
        on_node(cluster, f"sed -i 's#path: /var/lib/etcd$#path: /var/lib/restored#' {MANIFEST}")

        def is_restored():
            names = {each["metadata"]["name"] for each in cluster.list("Namespace")}
            return "before" in names and "after" not in names

        until(is_restored, "the objects of the snapshot")
        # What is on the disks of nodes is not in etcd: the manifests are those of now.
        assert "path: /var/lib/restored" in on_node(cluster, f"cat {MANIFEST}")
        assert '"restored":""' in on_node(cluster, "cat /var/lib/restored/member/snap/db")
        cluster.wait("Pod", "etcd-control-plane-1", lambda _: True, namespace="kube-system")
