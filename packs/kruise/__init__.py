"""OpenKruise 1.9: UnitedDeployments, CloneSets, advanced StatefulSets and launch priorities of containers.

A module belongs here if it is about OpenKruise: definitions and conversions, webhooks, controllers, flags.
"""
