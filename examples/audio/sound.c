/* PWM and DMA. The PWM takes a word from its FIFO for each channel in turn, once per SOUND_RANGE cycles of
 * its clock, and asks the DMA for more (DREQ); two control blocks, each the other's next, never end. */
#include "sound.h"
#include "mailbox.h"
#include "model.h"

#define GPIO (PERIPHERALS + 0x200000)
#define GPFSEL(pin) (GPIO + 4 * ((pin) / 10))
#define ALTERNATE_0 4u
#define ALTERNATE_5 2u

#define CLOCKS (PERIPHERALS + 0x101000)
#define PWM_CLOCK_CONTROL (CLOCKS + 0xa0)
#define PWM_CLOCK_DIVIDER (CLOCKS + 0xa4)
#define CLOCK_PASSWORD 0x5a000000u
#define CLOCK_PLLD 6u /* 500 MHz */
#define CLOCK_ENABLE (1u << 4)
#define CLOCK_KILL (1u << 5)
#define CLOCK_BUSY (1u << 7)

#define PWM (PERIPHERALS + 0x20c000)
#define PWM_CONTROL (PWM + 0x00)
#define PWM_STATUS (PWM + 0x04)
#define PWM_DMA (PWM + 0x08)
#define PWM_RANGE_1 (PWM + 0x10)
#define PWM_RANGE_2 (PWM + 0x20)
#define PWM_FIFO_BUS 0x7e20c018u
#define BOTH_FROM_FIFO (1u << 0 | 1u << 5 | 1u << 8 | 1u << 13)
#define CLEAR_FIFO (1u << 6)
#define FIFO_EMPTY (1u << 1)
#define STICKY_BITS 0x1fcu
#define DMA_REQUESTS (1u << 31 | 7u << 8 | 7u << 0) /* on, and below how many words it asks */

enum { CHANNEL = 5, TAG_DMA_CHANNELS = 0x60001 };
#define DMA (PERIPHERALS + 0x7000 + 0x100 * CHANNEL)
#define DMA_STATUS (DMA + 0x00)
#define DMA_BLOCK (DMA + 0x04)
#define DMA_ENABLE (PERIPHERALS + 0x7ff0)
#define ACTIVE (1u << 0)
#define INTERRUPT (1u << 2)
#define ERROR (1u << 8)
#define WAIT_FOR_WRITES (1u << 28)
#define RESET (1u << 31)
#define INTERRUPT_AT_END (1u << 0)
#define WAIT_RESPONSE (1u << 3)
#define DEST_DREQ (1u << 6)
#define SOURCE_INCREMENT (1u << 8)
#define DEVICE_PWM (5u << 16)
#define NO_WIDE_BURSTS (1u << 26)

#define INTERRUPTS_ENABLE_1 (PERIPHERALS + 0xb210)
#define INTERRUPTS_DISABLE_1 (PERIPHERALS + 0xb21c)
#define TIMER_STATUS (PERIPHERALS + 0x3000)
#define TIMER_COMPARE_3 (PERIPHERALS + 0x3018)
#define COMPARE_3 (1u << 3)
#define CHANNEL_INTERRUPT (1u << (16 + CHANNEL))

#define TIMEOUT 1000000u

struct control_block {
    uint32_t information, source, destination, length, stride, next, unused[2];
};

static volatile struct control_block blocks[SOUND_BUFFERS] __attribute__((aligned(32)));
static struct frame buffers[SOUND_BUFFERS][SOUND_FRAMES] __attribute__((aligned(32)));
static uint32_t queued, late;

static void pin_select(uint32_t pin, uint32_t function)
{
    uint32_t shift = 3 * (pin % 10);
    put32(GPFSEL(pin), (get32(GPFSEL(pin)) & ~(7u << shift)) | function << shift);
}

static void pins_start(void)
{
    enum model model = board_model();
    if (model == MODEL_ZERO || model == MODEL_ZERO_W) {
        pin_select(18, ALTERNATE_5); /* no jack: two pins of the header */
        pin_select(19, ALTERNATE_5);
        return;
    }
    bool pi3 = model == MODEL_3B || model == MODEL_3B_PLUS || model == MODEL_3A_PLUS;
    pin_select(40, ALTERNATE_0);
    pin_select(pi3 ? 41 : 45, ALTERNATE_0);
}

static void clock_start(void)
{
    put32(PWM_CLOCK_CONTROL, CLOCK_PASSWORD | CLOCK_KILL);
    uint32_t start = microseconds();
    while (get32(PWM_CLOCK_CONTROL) & CLOCK_BUSY)
        if (passed(start, TIMEOUT))
            panic("the PWM's clock does not stop");
    put32(PWM_CLOCK_DIVIDER, CLOCK_PASSWORD | (500000000u / (SOUND_RATE * SOUND_RANGE)) << 12);
    put32(PWM_CLOCK_CONTROL, CLOCK_PASSWORD | CLOCK_PLLD);
    put32(PWM_CLOCK_CONTROL, CLOCK_PASSWORD | CLOCK_PLLD | CLOCK_ENABLE);
}

void sound_start(void)
{
    uint32_t channels[1] = {0};
    if (!property(TAG_DMA_CHANNELS, 1, channels) || !(channels[0] >> CHANNEL & 1))
        panic("the firmware keeps DMA channel 5 for itself");
    pins_start();
    put32(PWM_CONTROL, 0);
    clock_start();
    put32(PWM_RANGE_1, SOUND_RANGE);
    put32(PWM_RANGE_2, SOUND_RANGE);
    put32(PWM_CONTROL, CLEAR_FIFO);
    put32(PWM_STATUS, STICKY_BITS);
    put32(PWM_DMA, DMA_REQUESTS);
    put32(PWM_CONTROL, BOTH_FROM_FIFO);

    for (uint32_t i = 0; i < SOUND_BUFFERS; i++) {
        blocks[i].information = NO_WIDE_BURSTS | DEVICE_PWM | SOURCE_INCREMENT | DEST_DREQ |
                                WAIT_RESPONSE | INTERRUPT_AT_END;
        blocks[i].source = bus_address(buffers[i]);
        blocks[i].destination = PWM_FIFO_BUS;
        blocks[i].length = sizeof buffers[i];
        blocks[i].next = bus_address(&blocks[(i + 1) % SOUND_BUFFERS]);
    }
    put32(DMA_ENABLE, get32(DMA_ENABLE) | 1u << CHANNEL);
    put32(DMA_STATUS, RESET);
    put32(INTERRUPTS_ENABLE_1, CHANNEL_INTERRUPT | COMPARE_3);
    queued = late = 0;
}

static bool is_playing(uint32_t buffer)
{
    return get32(DMA_BLOCK) == bus_address(&blocks[buffer]);
}

static void check_dma(uint32_t start)
{
    if (get32(DMA_STATUS) & ERROR)
        panic("the DMA has an error");
    if (passed(start, TIMEOUT))
        panic("the sound stands still");
}

/* Until the DMA ends a block, or for a second. The CPU has interrupts masked all the time: they do not
 * interrupt it, but they wake it up. */
static void sleep(uint32_t start)
{
    put32(TIMER_STATUS, COMPARE_3);
    put32(TIMER_COMPARE_3, start + TIMEOUT);
    wait_for_interrupt();
    put32(DMA_STATUS, WAIT_FOR_WRITES | INTERRUPT | ACTIVE); /* takes the interrupt back, goes on */
}

struct frame *sound_buffer(void)
{
    uint32_t buffer = queued % SOUND_BUFFERS;
    if (queued >= SOUND_BUFFERS) {
        uint32_t start = microseconds();
        while (is_playing(buffer)) {
            sleep(start);
            check_dma(start);
        }
    }
    return buffers[buffer];
}

void sound_queue(bool last)
{
    uint32_t buffer = queued % SOUND_BUFFERS;
    if (last) {
        blocks[buffer].next = 0; /* read when the block before it is done */
        data_synchronisation_barrier();
    }
    queued++;
    if (queued == SOUND_BUFFERS) {
        put32(DMA_BLOCK, bus_address(&blocks[0]));
        put32(DMA_STATUS, WAIT_FOR_WRITES | ACTIVE);
    } else if (queued > SOUND_BUFFERS && is_playing(buffer)) {
        late++;
    }
}

uint32_t sound_end(void)
{
    uint32_t start = microseconds();
    while (get32(DMA_STATUS) & ACTIVE)
        check_dma(start);
    while (!(get32(PWM_STATUS) & FIFO_EMPTY))
        check_dma(start);
    put32(PWM_CONTROL, 0);
    put32(PWM_DMA, 0);
    put32(INTERRUPTS_DISABLE_1, CHANNEL_INTERRUPT | COMPARE_3);
    return late;
}
