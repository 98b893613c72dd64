"""Packs in the API server: their kinds, compiled from their definitions, and the webhooks that run in this process.

A module belongs here if it handles any pack. Code for all custom resources is in `customresources/`, a pack itself in `packs/`.
"""
