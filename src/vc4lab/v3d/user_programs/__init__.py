"""User programs: twelve QPUs with the VPM, its DMA, mutex and semaphores, outside the graphics."""
