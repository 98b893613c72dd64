"""The profile `kubeadm`: what a cluster that kubeadm has made contains, besides nodes for pods.

What kubeadm writes for a minor release belongs here: the objects that it creates over HTTP, and the files of control-plane nodes. How a
simulated kubelet runs static pods, or what CoreDNS answers, does not.
"""
