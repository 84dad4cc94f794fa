/* Three clocks that interrupt, and a lamp. */
#ifndef IRQ_TIMER_H
#define IRQ_TIMER_H

#include "board.h"

/* Compiled without floating point registers: an interrupt keeps only r0-r3, r12 and lr. */
#define INTERRUPT_CODE __attribute__((target("general-regs-only")))

/* interrupt.S --------------------------------------------------------------------------------- */

/* The first time; then the two below. */
void interrupts_on(void);

static inline void interrupts_mask(void)
{
    __asm__ volatile("cpsid i" ::: "memory");
}

static inline void interrupts_unmask(void)
{
    __asm__ volatile("cpsie i" ::: "memory");
}

/* timers.c ------------------------------------------------------------------------------------ */

enum timer { SYSTEM_TIMER, ARM_TIMER, CORE_TIMER, TIMERS };

/* Core timer: only where __ARM_ARCH is 7 or more (Pi 2, 3). */
extern const char *const timer_names[TIMERS];
extern const uint32_t timer_periods[TIMERS]; /* microseconds; 0: the board has none */
extern volatile uint32_t ticks[TIMERS];      /* counted by the interrupt handler */

void timers_start(void);

/* led.c --------------------------------------------------------------------------------------- */

/* The activity LED. On a Pi 3 only the firmware reaches it, and an interrupt handler cannot wait for the
 * firmware: there the main program switches it. */
void led_start(void);
bool led_is_behind_firmware(void) INTERRUPT_CODE;
void led_switch(bool on) INTERRUPT_CODE;
void led_switch_by_firmware(bool on);

#endif
