"""QPUs that run shaders: programs as segments, threads, what they wait for."""
