"""The definitions of OpenKruise's kinds in one version, those derived for other versions, and the conversion of objects.

A module belongs here if it is about several versions of a kind. The definitions are YAML files, one for each kind.
"""
