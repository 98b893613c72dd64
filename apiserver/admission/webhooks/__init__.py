"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: registered webhooks review a write.

A module belongs here if it is a part of these plugins: which webhook is concerned, what it is sent, what it answered, where
it is. The call itself is HTTP's business and handed in.
"""
