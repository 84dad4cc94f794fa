"""The rendering list, set-up, the front end, the scheduler of QPUs and the tile buffer."""
