"""Snapshots as files. A module belongs here if it reads or writes one, or has the sources and targets of snapshots."""
