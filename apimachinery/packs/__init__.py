"""Kinds that are not Kubernetes' own, as the CustomResourceDefinitions that bring them.

A folder is a pack: the documents that an API server compiles into rows of its catalog when the pack is on, and that a
user gives to another API server. What is done with such kinds is in the packages that serve and control them.
"""
