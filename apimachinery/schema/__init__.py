"""What every type is made of, and Go's way of reading and writing it.

A module belongs here if it knows how types are built or walks a tree by its type alone: the model, the facts about the
built-in types, decoding a tree as kube-apiserver would. What a value should be (defaults, validation rules) and what
is done to objects (patches, apply) is elsewhere, on this model.
"""
