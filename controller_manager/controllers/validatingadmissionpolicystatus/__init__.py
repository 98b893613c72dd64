"""The types of the expressions in ValidatingAdmissionPolicies.

A module belongs here if it checks them, or finds the types. Upstream: pkg/controller/validatingadmissionpolicystatus.
"""
