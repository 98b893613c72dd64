"""Envoy: its static configuration, and what a server answers with it. Pure."""
