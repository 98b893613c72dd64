"""The controller of StatefulSets: pods with stable names, an order, and storage of their own.

A module belongs here if it is part of this controller. It reads caches and returns plans. Upstream:
pkg/controller/statefulset.
"""
