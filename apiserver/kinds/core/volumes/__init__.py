"""PersistentVolume, PersistentVolumeClaim, and the volumes of pods.

A module belongs here if it describes one of the two kinds, the sources of volumes, or claims. What a container does with a
volume is in `pod/`.
"""
