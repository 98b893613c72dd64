"""Kinds of flowcontrol.apiserver.k8s.io.

schemas    FlowSchemas: which requests are one flow
levels     PriorityLevelConfigurations: how many requests of a level are served at once
status     what both tell of themselves
"""
