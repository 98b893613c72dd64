"""HAProxy: its configuration, and what a server answers with it. Pure."""
