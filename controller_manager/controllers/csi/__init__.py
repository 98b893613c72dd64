"""The sidecars of storage drivers: they provision, attach and expand the volumes of simulated drivers.

A module belongs here if it does what a driver does in a real cluster. Its names are those of kubernetes-csi:
external-provisioner, external-attacher, external-resizer. The controllers of Kubernetes, which wait for these, have
folders of their own: `persistentvolume`, `attachdetach`, `volumeexpand`.
"""
