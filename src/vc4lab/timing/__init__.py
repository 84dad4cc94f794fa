"""How long the chip takes, and why: modules joined by queues, moved on by a native event scheduler."""
