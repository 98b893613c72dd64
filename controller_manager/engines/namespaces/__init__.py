"""Namespaces that are being deleted: their content goes, then their finalizer."""
