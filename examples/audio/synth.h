/* A small synthesiser: four voices of one sound, each with its own pitch, loudness and place. */
#ifndef SYNTH_H
#define SYNTH_H

#include "sound.h"

enum { VOICES = 4 };

/* Cycles as a part of 2^32, a frame; `hertz` is a constant. */
#define PITCH(hertz) ((uint32_t)((hertz) * 4294967296.0 / SOUND_RATE + 0.5))

void synth_start(void);

/* The next voice in turn strikes a note. `place`: 0 left to 256 right. */
void synth_strike(uint32_t pitch, uint32_t place);

void synth_fill(struct frame *frames, uint32_t count);

#endif
