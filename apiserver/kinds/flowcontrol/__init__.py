"""The kinds of flowcontrol.apiserver.k8s.io.

A module belongs here if it describes one of them, or what both share.
"""
