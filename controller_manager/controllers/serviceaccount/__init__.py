"""The account `default` in every namespace. Upstream: pkg/controller/serviceaccount.

A module belongs here if it sees to accounts that every namespace has.
"""
