"""Keys, bytes and revisions.

A module belongs here if it stores or moves bytes under keys with etcd's guarantees, without knowledge of Kubernetes:
no object, no kind, no resourceVersion. `kv.py` is the contract; `embedded/` and `remote/` implement it.
"""
