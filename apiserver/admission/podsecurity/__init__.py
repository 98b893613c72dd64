"""PodSecurity: the Pod Security Standards, which are selected by the labels of a namespace.

A module belongs here if it is a part of that plugin: the policy of a namespace, the checks of a level, or the plugin itself.
"""
