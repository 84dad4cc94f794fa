"""Programs' way to a display without the firmware: HVS, pixel valves, HDMI, VEC, TXP."""
