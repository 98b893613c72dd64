"""The kinds: rows, strategies, defaults, validation, conversion, warnings and columns.

A module belongs here if it describes one kind: a folder is an API group, a file in it is a kind, or a folder for a large
one. What several kinds share is in `common/`.
How verbs are carried out is in `registry/`; CustomResourceDefinitions become kinds in `customresources/`.
"""
