"""The controller of the ServiceAccount `default` in every namespace. Upstream: pkg/controller/serviceaccount.

A module belongs here if it creates the default ServiceAccount.
"""
