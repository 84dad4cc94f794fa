"""The firmware before the kernel: card, config.txt, device tree, entry."""
