/* Little mathematics: no library below us. */
#ifndef MATHS_H
#define MATHS_H

#define PI 3.14159265f

float sine(float radians);
float cosine(float radians);

static inline float square_root(float value)
{
    return __builtin_sqrtf(value); /* one instruction: errno is switched off */
}

static inline float mix(float a, float b, float t)
{
    return a + (b - a) * t;
}

static inline float clamp(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

#endif
