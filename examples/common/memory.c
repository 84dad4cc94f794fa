/* The two functions the compiler may call on its own. */
#include <stddef.h>

void *memset(void *target, int value, size_t length)
{
    unsigned char *p = target;
    while (length--)
        *p++ = (unsigned char)value;
    return target;
}

void *memcpy(void *target, const void *source, size_t length)
{
    unsigned char *p = target;
    const unsigned char *q = source;
    while (length--)
        *p++ = *q++;
    return target;
}
