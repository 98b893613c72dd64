"""Volumes of CSI drivers: on which nodes they are attached.

A module belongs here if it decides that by pods and VolumeAttachments. The driver's own attacher attaches. Upstream:
pkg/controller/volume/attachdetach.
"""
