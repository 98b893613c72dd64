"""The reconciliation that all kinds of StatefulSets share: pods with stable names, an order and storage.

Pure. A module belongs here if every such kind uses it; a `reconciliation.Kind` defines the differences of a kind.
"""
