"""The programs that only nodes have: crictl, journalctl, systemctl, kubeadm and those of the network of the machine.

A program belongs here if no container has it; an entry point of the group `mockube.node_programs` names it.
"""
