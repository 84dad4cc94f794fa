"""`--caches`: a model of the ARM's data cache as the GPU, the DMA and the display meet it."""
