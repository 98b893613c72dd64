"""What kubeadm leaves in a new cluster: its configuration, the rights of new nodes, kube-proxy, CoreDNS and a storage class.

A module belongs here if it makes these objects.
"""
