"""The controllers that publish the certificates by which pods trust the server: in every namespace, and as a bundle.

A module belongs here if it publishes these certificates. Upstream: pkg/controller/certificates/rootcacertpublisher and
clustertrustbundlepublisher.
"""
