/* What the four cores share. */
#ifndef MULTICORE_H
#define MULTICORE_H

#include "mailbox.h"

enum { CORES = 4 };

/* cores.S ------------------------------------------------------------------------------------- */

/* Where a core comes in that was sent here by its mailbox: MMU on, then core_main with its number. */
void core_entry(void);

/* A spin lock: 0 is free. Waiting cores sleep (WFE) until another core unlocks (SEV). */
void lock(volatile uint32_t *word);
void unlock(volatile uint32_t *word);

static inline void send_event(void)
{
    data_synchronisation_barrier(); /* what the others are to see comes first */
    __asm__ volatile("sev");
}

static inline void wait_for_event(void)
{
    __asm__ volatile("wfe" ::: "memory");
}

/* mmu.c --------------------------------------------------------------------------------------- */

/* Core 0 makes the table once; then every core switches MMU and caches on for itself (without using its
 * stack: it is a leaf, and registers are enough). */
void memory_map_make(const struct framebuffer *fb);
void memory_map_use(void);

/* fractal.c ----------------------------------------------------------------------------------- */

struct palette {
    uint32_t colours[256];
};

void palette_make(struct palette *palette, uint32_t core);
void fractal_row(const struct framebuffer *fb, uint32_t y, const struct palette *palette);

#endif
