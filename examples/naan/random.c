/* Numbers that look random and are the same in every run. */
#include "naan.h"

uint32_t hash(uint32_t value)
{
    value ^= value >> 16;
    value *= 0x7feb352du;
    value ^= value >> 15;
    value *= 0x846ca68bu;
    return value ^ value >> 16;
}

float random_float(uint32_t seed, float low, float high)
{
    return mix(low, high, (float)(hash(seed) >> 8) * (1.0f / (1 << 24)));
}
