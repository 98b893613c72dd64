"""The four kinds of patches, as pure functions on JSON trees.

A module belongs here if it turns an object and a patch into the object that kube-apiserver would make of them: JSON
patch, JSON merge patch, strategic merge patch, server-side apply with the ownership of fields. Trees are never
mutated; the new tree shares with the old one what a patch does not change. The types come from
`mockube.apimachinery.schema.model`; HTTP, storage, defaults and validation are elsewhere.
"""
