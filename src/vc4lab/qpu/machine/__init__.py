"""Programs for the QPU before they have registers and an order."""
