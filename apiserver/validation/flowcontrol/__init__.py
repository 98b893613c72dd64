"""Kinds of flowcontrol.apiserver.k8s.io.

A module belongs here if it holds the rules of one of the two, or what they share.

schemas    FlowSchemas: which requests are one flow
levels     PriorityLevelConfigurations: how many requests of a level are served at once
status     what both tell of themselves
"""
