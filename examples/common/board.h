/* Raspberry Pi 2: where the registers are, and the few services every example needs. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERIPHERALS 0x3f000000u

static inline void put32(uint32_t address, uint32_t value)
{
    __asm__ volatile("dsb" ::: "memory"); /* everything written before reaches memory first */
    *(volatile uint32_t *)address = value;
}

static inline uint32_t get32(uint32_t address)
{
    uint32_t value = *(volatile uint32_t *)address;
    __asm__ volatile("dmb" ::: "memory");
    return value;
}

/* What the GPU calls a place in our memory: the uncached alias of the VideoCore bus. */
static inline uint32_t bus_address(const volatile void *pointer)
{
    return (uint32_t)pointer | 0xc0000000u;
}

static inline void *from_bus_address(uint32_t address)
{
    return (void *)(address & 0x3fffffffu);
}

/* timer.c: the free-running microsecond counter */
uint32_t microseconds(void);
void wait_microseconds(uint32_t duration);
static inline bool passed(uint32_t start, uint32_t duration)
{
    return microseconds() - start >= duration;
}

/* uart.c: PL011 on GPIO 14/15, 115200 baud */
void uart_start(void);
void print(const char *text);
void print_hex(uint32_t value);
void print_number(uint32_t value);
void print_line(const char *text);
void print_value(const char *name, uint32_t value);

/* panic.c: an end with words */
_Noreturn void halt(void);
_Noreturn void panic(const char *text);
_Noreturn void panic_at(const char *text, uint32_t address);

#endif
