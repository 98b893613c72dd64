"""The model of types, and Go's way of reading and writing their values.

A module belongs here if it builds types or walks a tree by its type alone: the model, the facts about the built-in
types, decoding a tree as kube-apiserver does. Defaults, validation rules, patches and apply are elsewhere and use this
model.
"""
