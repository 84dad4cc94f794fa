"""The programs as processes of the host: started under a filter, watched, read."""
