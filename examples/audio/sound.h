/* Sound out of the headphone jack: the PWM block, fed by the DMA from two buffers in turn. */
#ifndef SOUND_H
#define SOUND_H

#include "board.h"

enum {
    SOUND_RATE = 40000,    /* frames a second: 100 MHz / SOUND_RANGE */
    SOUND_RANGE = 2500,    /* of a word: 0 is lowest, SOUND_RANGE / 2 is silence */
    SOUND_FRAMES = 1600,   /* of a buffer: 40 ms */
    SOUND_BUFFERS = 2,
};

/* Left and right. */
struct frame {
    uint32_t level[2];
};

/* Clock, pins, PWM and DMA channel. */
void sound_start(void);

/* The next buffer to fill; waits until it has been played. Then sound_queue() it: the first two calls fill
 * both buffers, and the second one starts the sound. `last`: nothing comes after it. */
struct frame *sound_buffer(void);
void sound_queue(bool last);

/* Waits until the last frame is out, and switches off. Gives how many buffers came too late. */
uint32_t sound_end(void);

#endif
