"""The vertex cache, the attribute DMA, the binner and the list thread before it."""
