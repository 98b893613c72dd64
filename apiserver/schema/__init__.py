"""Decoding of objects by their types, with the results and the errors of Go's decoders.

A module belongs here if it decodes a tree by its type alone, as kube-apiserver does. The model of types and the data of the
built-in ones are in `mockube.apimachinery.schema`, which the controller manager needs, too; defaults, validation, patches and
server-side apply are elsewhere.
"""
