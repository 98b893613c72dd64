"""Packs: kinds of other projects that come with mockube. A pack is a folder with its project's definitions and webhooks.

A module belongs here if it handles packs, or describes the kinds of one. Code for all custom resources is in
`customresources/`; the controllers of packs are in the controller manager. Packs are not in `kinds/`, because their
webhooks read other objects, which the layers of the built-in kinds do not allow.
"""
