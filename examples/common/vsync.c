/* The firmware raises the SMI interrupt at every vertical sync (config.txt: fake_vsync_isr=1). */
#include "vsync.h"
#include "board.h"

#define IRQ_PENDING_2 (PERIPHERALS + 0xb208)
#define IRQ_ENABLE_2 (PERIPHERALS + 0xb214)
#define SMI_CS (PERIPHERALS + 0x600000)
#define IRQ_2_SMI (1u << 16)

#define SYNC_TIMEOUT 100000u
#define FRAME_MICROSECONDS 16667u

void vsync_start(void)
{
    put32(IRQ_ENABLE_2, IRQ_2_SMI); /* visible as pending; the CPU itself keeps interrupts masked */
}

void vsync_wait(void)
{
    static bool has_sync = true;
    static uint32_t last;

    if (has_sync) {
        uint32_t start = microseconds();
        while (!(get32(IRQ_PENDING_2) & IRQ_2_SMI))
            if (passed(start, SYNC_TIMEOUT)) {
                print_line("no vertical sync: is fake_vsync_isr=1 in config.txt? Using the timer.");
                has_sync = false;
                break;
            }
        put32(SMI_CS, 0); /* acknowledge */
    } else {
        while (!passed(last, FRAME_MICROSECONDS)) {
        }
    }
    last = microseconds();
}
