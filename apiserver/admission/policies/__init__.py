"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: CEL expressions that validate or change writes.

A module belongs here if it is a part of these plugins: which policy matches, the variables of its expressions, or the
use of their results.
"""
