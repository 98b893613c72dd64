"""Kinds that are not Kubernetes' own, as the CustomResourceDefinitions that bring them.

A document belongs here if it defines a kind that this control plane can serve or control, in the folder of
its pack. Our API server compiles it into rows of its catalog when the pack is on, and users give it to another API
server. What is done with such kinds is in the packages that serve and control them.
"""
