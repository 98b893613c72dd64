"""The model of types, and the decoding of values as Go does it.

A module belongs here if it builds types or processes a tree by its type alone: the model, the data of the built-in types,
and decoding as in kube-apiserver. Defaults, validation, patches and server-side apply are elsewhere and use this model.
"""
