"""The programs that only nodes have: crictl, journalctl, systemctl, kubeadm and those of the network of the machine."""
