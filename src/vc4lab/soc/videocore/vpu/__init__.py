"""VideoCore's own processor (VPU): an interpreter of its scalar instructions."""
