"""The two processes of a control plane. A file belongs here if it starts, supervises or stops them."""
