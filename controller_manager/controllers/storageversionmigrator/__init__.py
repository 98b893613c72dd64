"""The controllers of StorageVersionMigrations, which write all objects of a resource again.

A module belongs here if it decides which migration runs, or migrates objects. Upstream: pkg/controller/storageversionmigrator.
"""
