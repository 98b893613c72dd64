"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: registered webhooks review a write.

A module belongs here if it is a part of these plugins: which webhook matches, its request, its response, where
it is. The HTTP client is passed in.
"""
