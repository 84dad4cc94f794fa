"""Sound: PWM, PCM and its recording."""
