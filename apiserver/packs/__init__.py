"""Packs: kinds of other projects that come with mockube. A pack is a folder with its project's webhooks.

A module belongs here if it handles packs, or describes the kinds of one. Code for all custom resources is in
`customresources/`; the definitions of packs, which both processes read, are in `apimachinery/packs/`.
"""
