"""The ConfigMap `kube-root-ca.crt` in every namespace, by which pods trust the server.

Upstream: pkg/controller/certificates/rootcacertpublisher.
"""
