"""The patches that only a server applies, as pure functions on JSON trees: JSON patch, and server-side apply with field ownership.

A module belongs here if it applies such a patch to an object as kube-apiserver does. JSON merge patch and strategic merge
patch, which the controller manager applies, too, are in `mockube.apimachinery.patch`. HTTP, storage, defaults and validation are
elsewhere.
"""
