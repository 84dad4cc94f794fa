/* MMU and caches: a flat map of 1 MiB sections, so that the cores share cached memory. */
#include "multicore.h"

#define SECTION_SHIFT 20
#define SECTIONS 4096u
#define SECTION 0x00002u
#define BUFFERABLE 0x00004u
#define CACHEABLE 0x00008u
#define NEVER_EXECUTE 0x00010u
#define READ_WRITE 0x00c00u
#define EXTENDED_TYPE 0x01000u /* TEX = 1 */
#define SHAREABLE 0x10000u

#define CACHED (SECTION | READ_WRITE | SHAREABLE | EXTENDED_TYPE | CACHEABLE | BUFFERABLE)
#define UNCACHED (SECTION | READ_WRITE | SHAREABLE | EXTENDED_TYPE | NEVER_EXECUTE)
#define DEVICE (SECTION | READ_WRITE | BUFFERABLE | NEVER_EXECUTE)

#define CORTEX_A7 0xc07u
#define WALKS_CACHED_AND_SHARED 0x4au /* of TTBR0: inner and outer write-back, shareable */

static uint32_t table[SECTIONS] __attribute__((aligned(16384), section(".noinit")));

void memory_map_make(const struct framebuffer *fb)
{
    uint32_t first = (uint32_t)from_bus_address(fb->address) >> SECTION_SHIFT;
    uint32_t last = ((uint32_t)from_bus_address(fb->address) + fb->height * fb->pitch - 1) >> SECTION_SHIFT;
    for (uint32_t i = 0; i < SECTIONS; i++) {
        uint32_t kind = i >= PERIPHERALS >> SECTION_SHIFT ? DEVICE : CACHED;
        if (i >= first && i <= last)
            kind = UNCACHED; /* the display reads memory, not our caches */
        table[i] = i << SECTION_SHIFT | kind;
    }
    data_synchronisation_barrier();
}

void memory_map_use(void)
{
    uint32_t identity, value;

    /* The core takes part in coherency before it has caches. On a Cortex-A7 that is a bit of ACTLR; the
     * Cortex-A53 has it in CPUECTLR, which the firmware's stub sets because we may not. */
    __asm__ volatile("mrc p15, 0, %0, c0, c0, 0" : "=r"(identity));
    if ((identity >> 4 & 0xfff) == CORTEX_A7) {
        __asm__ volatile("mrc p15, 0, %0, c1, c0, 1" : "=r"(value));
        __asm__ volatile("mcr p15, 0, %0, c1, c0, 1" ::"r"(value | 1u << 6));
    }

    /* Nothing old: instruction cache, branch prediction, TLB. The data caches are empty since reset. */
    __asm__ volatile("mcr p15, 0, %0, c7, c5, 0\n\t"
                     "mcr p15, 0, %0, c7, c5, 6\n\t"
                     "mcr p15, 0, %0, c8, c7, 0\n\t"
                     "dsb\n\tisb" ::"r"(0) : "memory");

    __asm__ volatile("mcr p15, 0, %0, c2, c0, 2" ::"r"(0));                 /* TTBCR: TTBR0 only */
    __asm__ volatile("mcr p15, 0, %0, c2, c0, 0" ::"r"((uint32_t)table | WALKS_CACHED_AND_SHARED));
    __asm__ volatile("mcr p15, 0, %0, c3, c0, 0" ::"r"(1));                 /* DACR: check rights */
    __asm__ volatile("isb");
    __asm__ volatile("mrc p15, 0, %0, c1, c0, 0" : "=r"(value));
    value |= 1u << 12 | 1u << 11 | 1u << 2 | 1u << 0; /* instruction cache, prediction, data cache, MMU */
    __asm__ volatile("mcr p15, 0, %0, c1, c0, 0\n\tisb" ::"r"(value) : "memory");
}
