"""The kinds: rows, strategies, defaults, validation, conversion, warnings and columns.

A module belongs here if it describes kinds: a folder is an API group, a file in it is a kind or two that are alike, or a folder for a
large one. What several groups share is in `common/`, the schemas of definitions in `jsonschema/`, older releases in `minors/`.
How verbs are carried out is in `registry/`; CustomResourceDefinitions become kinds in `customresources/`.
"""
