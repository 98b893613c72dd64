"""Metrics of requests and of what is stored, under kube-apiserver's names.

A module belongs here if it counts something for /metrics.
"""
