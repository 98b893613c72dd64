"""The two processes of a control plane. A file belongs here if it starts them, minds them or ends them."""
