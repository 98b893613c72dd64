"""Envoy: its configuration, and what a server answers with it. Pure.

A module belongs here if it reads a configuration of Envoy, or answers a request by one.
"""
