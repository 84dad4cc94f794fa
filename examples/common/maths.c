/* Sine and cosine by a polynomial: errors below 0.0002, and the same bits on every board. */
#include "maths.h"

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
