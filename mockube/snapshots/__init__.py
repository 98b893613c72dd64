"""Snapshots as people keep them. A file belongs here if it writes one to a file, or knows where one can be taken from or put."""
