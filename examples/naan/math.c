/* Little mathematics: no library below us. */
#include "naan.h"

#define PI 3.14159265f

float sine(float radians)
{
    float turns = radians * (0.5f / PI);
    int whole = (int)(turns >= 0.0f ? turns + 0.5f : turns - 0.5f);
    float x = (turns - (float)whole) * (2.0f * PI); /* -pi .. pi */
    if (x > 0.5f * PI)
        x = PI - x;
    else if (x < -0.5f * PI)
        x = -PI - x;
    float square = x * x;
    return x * (1.0f + square * (-1.0f / 6 + square * (1.0f / 120 - square * (1.0f / 5040))));
}

float cosine(float radians)
{
    return sine(radians + 0.5f * PI);
}

float square_root(float value)
{
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(value));
    return root;
}

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
