"""The four ways to change an object by saying what should be different, as pure functions on JSON trees.

A module belongs here if it turns an object and a patch into the object that kube-apiserver would make of them: JSON
patch, JSON merge patch, strategic merge patch, server-side apply with the ownership of fields. Trees are never
mutated; what a patch does not touch is shared between the tree before and the tree after. What a type is made of
comes from `mockube.apimachinery.schema.model`; HTTP, storage, defaults and validation are elsewhere.
"""
