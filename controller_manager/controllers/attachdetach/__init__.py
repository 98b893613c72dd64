"""Volumes of CSI drivers: on which nodes they are attached.

A module belongs here if it decides that by pods and VolumeAttachments. Whoever attaches is the driver's own. Upstream:
pkg/controller/volume/attachdetach.
"""
