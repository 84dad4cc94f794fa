"""Images in memory: where a texel lies, what its bytes mean as a colour."""
