/* Three timers, three kinds of interrupt source. Each is set anew relative to its last moment, not to the
 * moment the handler runs, so none of them drifts. */
#include "irq_timer.h"
#include "mailbox.h"

#define SYSTEM (PERIPHERALS + 0x3000) /* 1 MHz; the firmware uses compare 0 and 2 */
#define SYSTEM_STATUS (SYSTEM + 0x00)
#define SYSTEM_LOW (SYSTEM + 0x04)
#define SYSTEM_COMPARE_1 (SYSTEM + 0x10)
#define COMPARE_1 (1u << 1)

#define INTERRUPTS (PERIPHERALS + 0xb200)
#define PENDING_BASIC (INTERRUPTS + 0x00)
#define PENDING_1 (INTERRUPTS + 0x04)
#define ENABLE_1 (INTERRUPTS + 0x10)
#define ENABLE_BASIC (INTERRUPTS + 0x18)
#define BASIC_ARM_TIMER (1u << 0)

#define ARM (PERIPHERALS + 0xb400)
#define ARM_LOAD (ARM + 0x00)
#define ARM_CONTROL (ARM + 0x08)
#define ARM_CLEAR (ARM + 0x0c)
#define ARM_PREDIVIDER (ARM + 0x1c)
#define WIDE (1u << 1)
#define INTERRUPT (1u << 5)
#define ENABLE (1u << 7)

enum { TAG_CLOCK_RATE = 0x30002, CLOCK_CORE = 4 };

const char *const timer_names[TIMERS] = {"SYSTEM TIMER", "ARM TIMER", "CORE TIMER"};
volatile uint32_t ticks[TIMERS];

static void system_timer_start(void)
{
    put32(SYSTEM_STATUS, COMPARE_1);
    put32(SYSTEM_COMPARE_1, get32(SYSTEM_LOW) + timer_periods[SYSTEM_TIMER]);
    put32(ENABLE_1, COMPARE_1); /* interrupts 0 to 3 are the four compares */
}

static INTERRUPT_CODE void system_timer_tick(void)
{
    put32(SYSTEM_STATUS, COMPARE_1);
    put32(SYSTEM_COMPARE_1, get32(SYSTEM_COMPARE_1) + timer_periods[SYSTEM_TIMER]);
    uint32_t count = ++ticks[SYSTEM_TIMER];
    if (!led_is_behind_firmware())
        led_switch(count & 1);
}

static void arm_timer_start(void)
{
    /* It counts the core clock, which is not the same on every board, down to 1 MHz here. */
    uint32_t rate[2] = {CLOCK_CORE, 0};
    if (!property(TAG_CLOCK_RATE, 2, rate) || rate[1] < 1000000)
        panic("the firmware does not tell the core clock");
    put32(ARM_CONTROL, 0);
    put32(ARM_PREDIVIDER, rate[1] / 1000000 - 1);
    put32(ARM_CLEAR, 0);
    put32(ARM_LOAD, timer_periods[ARM_TIMER] - 1);
    put32(ARM_CONTROL, WIDE | INTERRUPT | ENABLE); /* reloads itself */
    put32(ENABLE_BASIC, BASIC_ARM_TIMER);
}

static INTERRUPT_CODE void arm_timer_tick(void)
{
    put32(ARM_CLEAR, 0);
    ++ticks[ARM_TIMER];
}

#if __ARM_ARCH >= 7
/* The core's own timer, and the local block that says which interrupt a core sees. */
const uint32_t timer_periods[TIMERS] = {100000, 250000, 40000};

#define LOCAL 0x40000000u
#define TIMER_PRESCALER (LOCAL + 0x08)
#define EVERY_TICK 0x80000000u /* of the crystal: after a reset the timers count microseconds, whatever CNTFRQ says */
#define TIMER_INTERRUPTS_0 (LOCAL + 0x40)
#define IRQ_SOURCE_0 (LOCAL + 0x60)
#define SOURCE_VIRTUAL_TIMER (1u << 3) /* the one timer that is the same in both worlds, secure or not */
#define SOURCE_GPU (1u << 8)

static uint32_t core_timer_period;
static uint64_t core_timer_next;

static INTERRUPT_CODE void core_timer_set(uint64_t moment)
{
    uint32_t low = (uint32_t)moment, high = (uint32_t)(moment >> 32);
    __asm__ volatile("mcrr p15, 3, %0, %1, c14\n\tisb" ::"r"(low), "r"(high)); /* CNTV_CVAL */
}

static void core_timer_start(void)
{
    uint32_t frequency, low, high;
    __asm__ volatile("mrc p15, 0, %0, c14, c0, 0" : "=r"(frequency)); /* CNTFRQ, set by the firmware */
    if (!frequency)
        panic("the core timer's frequency is not set");
    put32(TIMER_PRESCALER, EVERY_TICK);
    core_timer_period = frequency / 1000 * (timer_periods[CORE_TIMER] / 1000);
    __asm__ volatile("mrrc p15, 1, %0, %1, c14" : "=r"(low), "=r"(high)); /* CNTVCT */
    core_timer_next = ((uint64_t)high << 32 | low) + core_timer_period;
    core_timer_set(core_timer_next);
    __asm__ volatile("mcr p15, 0, %0, c14, c3, 1\n\tisb" ::"r"(1)); /* CNTV_CTL: on, not masked */
    put32(TIMER_INTERRUPTS_0, SOURCE_VIRTUAL_TIMER);
}

static INTERRUPT_CODE void core_timer_tick(void)
{
    core_timer_next += core_timer_period;
    core_timer_set(core_timer_next); /* a moment to come: the timer takes its interrupt back */
    ++ticks[CORE_TIMER];
}

static INTERRUPT_CODE bool gpu_interrupts(void)
{
    uint32_t sources = get32(IRQ_SOURCE_0);
    if (sources & SOURCE_VIRTUAL_TIMER)
        core_timer_tick();
    return sources & SOURCE_GPU;
}
#else
const uint32_t timer_periods[TIMERS] = {100000, 250000, 0};

static void core_timer_start(void)
{
}

static INTERRUPT_CODE bool gpu_interrupts(void)
{
    return true; /* one core, one line */
}
#endif

/* Called by irq_entry: each that may have raised the line is asked, not only the first. */
INTERRUPT_CODE void interrupt(void);
void interrupt(void)
{
    if (!gpu_interrupts())
        return;
    if (get32(PENDING_1) & COMPARE_1)
        system_timer_tick();
    if (get32(PENDING_BASIC) & BASIC_ARM_TIMER)
        arm_timer_tick();
}

void timers_start(void)
{
    core_timer_start();
    arm_timer_start();
    system_timer_start(); /* the last one: when it has ticked a second, so have the others */
}
