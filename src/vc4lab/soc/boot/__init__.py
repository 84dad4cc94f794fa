"""What the firmware does before the kernel: card, config.txt, device tree, entry."""
