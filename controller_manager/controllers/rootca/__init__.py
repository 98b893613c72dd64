"""The controller of the ConfigMap `kube-root-ca.crt` in every namespace, by which pods trust the server.

A module belongs here if it publishes this ConfigMap. Upstream: pkg/controller/certificates/rootcacertpublisher.
"""
