"""Kinds of admissionregistration.k8s.io.

A module belongs here if it holds rules of webhooks' configurations or of admission policies, or what both share. How
a webhook is called is outside: definitions of resources have webhooks too.

matching    which requests are meant      webhooks    configurations of webhooks
policies    admission policies and their bindings
"""
