"""SD cards on the host: folders and images with a FAT file system."""
