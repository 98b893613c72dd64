"""What is true of volumes and claims whoever asks: names, who is bound to whom, which volume fits. Pure."""
