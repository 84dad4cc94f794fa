/* The board: where the registers are, and the few services every example needs.
 *
 * Three kernels come from the same source: kernel.img (ARMv6: Pi Zero and 1), kernel7.img (ARMv7:
 * Pi 2, and Pi 3 in 32 bits) and kernel8.img (AArch64: Pi 3). */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BUS_ALIAS: the part of the VideoCore bus where the GPU sees what the CPU has written. On the
 * BCM2835 both go through the GPU's second-level cache; later chips' CPUs write to memory directly. */
#if __ARM_ARCH == 6
#define PERIPHERALS 0x20000000u
#define BUS_ALIAS 0x40000000u
#else
#define PERIPHERALS 0x3f000000u
#define BUS_ALIAS 0xc0000000u
#endif

/* Everything before has reached memory (DSB), or is at least in order with what follows (DMB). */
#if __ARM_ARCH == 6
static inline void data_synchronisation_barrier(void)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c10, 4" ::"r"(0) : "memory");
}
static inline void data_memory_barrier(void)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c10, 5" ::"r"(0) : "memory");
}
static inline void wait_for_interrupt(void)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c0, 4" ::"r"(0) : "memory");
}
#else
static inline void data_synchronisation_barrier(void)
{
    __asm__ volatile("dsb sy" ::: "memory");
}
static inline void data_memory_barrier(void)
{
    __asm__ volatile("dmb sy" ::: "memory");
}
static inline void wait_for_interrupt(void)
{
    __asm__ volatile("wfi" ::: "memory");
}
#endif

static inline void put32(uint32_t address, uint32_t value)
{
    data_synchronisation_barrier();
    *(volatile uint32_t *)(uintptr_t)address = value;
}

static inline uint32_t get32(uint32_t address)
{
    uint32_t value = *(volatile uint32_t *)(uintptr_t)address;
    data_memory_barrier();
    return value;
}

/* What the GPU calls a place in our memory, and the way back. */
static inline uint32_t bus_address(const volatile void *pointer)
{
    return (uint32_t)(uintptr_t)pointer | BUS_ALIAS;
}

static inline void *from_bus_address(uint32_t address)
{
    return (void *)(uintptr_t)(address & 0x3fffffffu);
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
