"""The model of types, and the data of the built-in types and of the minor releases.

A module belongs here if it builds types. Decoding by types is in `mockube.apiserver.schema`.
"""
