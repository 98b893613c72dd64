"""The kind of apiextensions.k8s.io: CustomResourceDefinition.

A module belongs here if it describes a part of a definition. The rules that a definition has for its objects are in
`apiserver/customresources/`.

custom_resource_definition    row, strategy, defaults, warnings
validation                    names, versions together, conversion
versions                      one version: columns, scale, deprecation
schemas, rules, defaults      the schema of a version
v1beta1                       definitions that kube-apiserver stored
"""
