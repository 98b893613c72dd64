"""Claims and the volumes that serve them: binding, waiting, loss, release. Upstream: pkg/controller/volume/persistentvolume.

A module belongs here if it decides what becomes of a claim or a volume; whether one fits the other is `storage`'s. One
object is written once in a plan: the change brings its key back for the next step.
"""
