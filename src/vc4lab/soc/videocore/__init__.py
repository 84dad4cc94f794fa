"""The firmware's side of the mailbox: properties, memory handles, display."""
