"""Packs: kinds of other projects that come with mockube. A pack is a folder with what its project's webhooks do.

A module belongs here if it knows packs, or kinds of one. What is done with every custom resource is in `customresources/`; the
definitions of packs, which both processes read, are in `apimachinery/packs/`.
"""
