/* Voices: a wave from a table, read at the note's pace, times an envelope. */
#include "synth.h"

enum {
    WAVE_BITS = 10,
    WAVE_SIZE = 1 << WAVE_BITS,
    AMPLITUDE = 550,  /* of a voice at its loudest; four of them stay within SOUND_RANGE / 2 */
    MILLISECOND = SOUND_RATE / 1000,
    LOUDEST = 1 << 16,
    ATTACK = LOUDEST / 5, /* louder by so much a millisecond: 5 ms */
    DECAY_SHIFT = 7,      /* then softer by 1/128 a millisecond */
};

struct voice {
    uint32_t phase, pitch;
    int32_t loudness;
    bool rising;
    int32_t left, right; /* of 256 */
};

static int32_t wave[WAVE_SIZE]; /* of AMPLITUDE */
static struct voice voices[VOICES];
static uint32_t next_voice;

/* A sine with some of its second and third harmonic, as a plucked string has them. */
void synth_start(void)
{
    const float cosine_step = 0.99998117528f, sine_step = 0.00613588465f; /* of 2 pi / WAVE_SIZE */
    static float sine[WAVE_SIZE];
    float x = 1.0f, y = 0.0f;
    for (uint32_t i = 0; i < WAVE_SIZE; i++) {
        sine[i] = y;
        float turned = x * cosine_step - y * sine_step;
        y = x * sine_step + y * cosine_step;
        x = turned;
    }
    for (uint32_t i = 0; i < WAVE_SIZE; i++) {
        float value = sine[i] + 0.3f * sine[2 * i % WAVE_SIZE] + 0.12f * sine[3 * i % WAVE_SIZE];
        wave[i] = (int32_t)(value * (AMPLITUDE / 1.3f));
    }
}

void synth_strike(uint32_t pitch, uint32_t place)
{
    struct voice *voice = &voices[next_voice++ % VOICES];
    voice->pitch = pitch;
    voice->rising = true; /* from where it is: no click */
    voice->left = 256 - (int32_t)place;
    voice->right = (int32_t)place;
}

static void envelope(struct voice *voice)
{
    if (!voice->rising) {
        voice->loudness -= voice->loudness >> DECAY_SHIFT;
        return;
    }
    voice->loudness += ATTACK;
    if (voice->loudness >= LOUDEST) {
        voice->loudness = LOUDEST;
        voice->rising = false;
    }
}

void synth_fill(struct frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t left = SOUND_RANGE / 2, right = SOUND_RANGE / 2;
        for (uint32_t n = 0; n < VOICES; n++) {
            struct voice *voice = &voices[n];
            if (i % MILLISECOND == 0)
                envelope(voice);
            int32_t level = wave[voice->phase >> (32 - WAVE_BITS)] * voice->loudness / LOUDEST;
            left += level * voice->left / 256;
            right += level * voice->right / 256;
            voice->phase += voice->pitch;
        }
        frames[i].level[0] = (uint32_t)left;
        frames[i].level[1] = (uint32_t)right;
    }
}
