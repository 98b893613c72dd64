"""The controller that attaches volumes of CSI drivers to nodes, and detaches them.

A module belongs here if it creates and deletes VolumeAttachments. The driver's attacher attaches the volumes. Upstream:
pkg/controller/volume/attachdetach.
"""
