"""Snapshots of a store as files. A module belongs here if it saves or restores them."""
