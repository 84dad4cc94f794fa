/* The system timer: 1 MHz, always running. */
#include "board.h"

#define TIMER_LOW (PERIPHERALS + 0x3004)

uint32_t microseconds(void)
{
    return get32(TIMER_LOW);
}

void wait_microseconds(uint32_t duration)
{
    uint32_t start = microseconds();
    while (!passed(start, duration)) {
    }
}
