"""The four types of patches, as pure functions on JSON trees.

A module belongs here if it applies a patch to an object as kube-apiserver does: JSON patch, JSON merge patch, strategic
merge patch, or server-side apply with field ownership. Trees are never mutated: the new tree shares the unchanged parts
with the old one. The types are those of `mockube.apimachinery.schema.model`; HTTP, storage, defaults and validation are
elsewhere.
"""
