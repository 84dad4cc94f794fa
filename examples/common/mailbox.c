/* The ARM-VideoCore mailbox: FIFOs of words, data in bits 31:4, channel in bits 3:0. */
#include "mailbox.h"

#define MAILBOX (PERIPHERALS + 0xb880)
#define MAILBOX0_READ (MAILBOX + 0x00)
#define MAILBOX0_STATUS (MAILBOX + 0x18)
#define MAILBOX1_WRITE (MAILBOX + 0x20)
#define MAILBOX1_STATUS (MAILBOX + 0x38)
#define STATUS_FULL 0x80000000u
#define STATUS_EMPTY 0x40000000u

#define ANSWER_TIMEOUT 1000000u

#define REQUEST 0u
#define RESPONSE_OK 0x80000000u

enum {
    TAG_SET_PHYSICAL_SIZE = 0x48003,
    TAG_SET_VIRTUAL_SIZE = 0x48004,
    TAG_SET_DEPTH = 0x48005,
    TAG_SET_PIXEL_ORDER = 0x48006,
    TAG_SET_ALPHA_MODE = 0x48007,
    TAG_SET_VIRTUAL_OFFSET = 0x48009,
    TAG_ALLOCATE = 0x40001,
    TAG_GET_PITCH = 0x40008,
};

void mailbox_call(uint32_t channel, volatile void *message)
{
    uint32_t word = bus_address(message) | channel;
    uint32_t start = microseconds();
    while (get32(MAILBOX1_STATUS) & STATUS_FULL)
        if (passed(start, ANSWER_TIMEOUT))
            panic("the mailbox stays full");
    put32(MAILBOX1_WRITE, word);
    for (;;) {
        while (get32(MAILBOX0_STATUS) & STATUS_EMPTY)
            if (passed(start, ANSWER_TIMEOUT))
                panic("the firmware does not answer the mailbox");
        if ((get32(MAILBOX0_READ) & 0xf) == channel) /* data: channel 1 answers 0, not the address */
            break;
    }
    data_synchronisation_barrier();
}

bool property(uint32_t tag, uint32_t words, uint32_t *values)
{
    static volatile uint32_t message[16] __attribute__((aligned(16)));
    message[0] = sizeof message;
    message[1] = REQUEST;
    message[2] = tag;
    message[3] = 4 * words;
    message[4] = REQUEST;
    for (uint32_t i = 0; i < words; i++)
        message[5 + i] = values[i];
    message[5 + words] = 0;
    mailbox_call(MAILBOX_PROPERTIES, message);
    for (uint32_t i = 0; i < words; i++)
        values[i] = message[5 + i];
    return message[1] == RESPONSE_OK && message[4] & RESPONSE_OK;
}

struct framebuffer framebuffer_open(uint32_t width, uint32_t height, uint32_t pages)
{
    enum { SIZE = 5, VIRTUAL = 10, ADDRESS = 32, PITCH = 37 };
    static volatile uint32_t message[40] __attribute__((aligned(16)));
    const uint32_t request[] = {
        sizeof message, REQUEST,
        TAG_SET_PHYSICAL_SIZE, 8, 0, width, height,
        TAG_SET_VIRTUAL_SIZE, 8, 0, width, height * pages,
        TAG_SET_DEPTH, 4, 0, 32,
        TAG_SET_PIXEL_ORDER, 4, 0, 1, /* RGB */
        TAG_SET_ALPHA_MODE, 4, 0, 2,  /* ignored */
        TAG_SET_VIRTUAL_OFFSET, 8, 0, 0, 0,
        TAG_ALLOCATE, 8, 0, 4096, 0,
        TAG_GET_PITCH, 4, 0, 0,
        0,
    };
    for (uint32_t i = 0; i < sizeof request / sizeof *request; i++)
        message[i] = request[i];
    mailbox_call(MAILBOX_PROPERTIES, message);
    if (message[1] != RESPONSE_OK)
        panic("the firmware refuses the framebuffer request");

    struct framebuffer fb = {
        .width = message[SIZE],
        .height = message[SIZE + 1],
        .pages = pages,
        .pitch = message[PITCH],
        .address = message[ADDRESS],
    };
    if (!fb.address)
        panic("no framebuffer memory");
    if (fb.width != width || fb.height != height || message[VIRTUAL + 1] < height * pages)
        panic("the framebuffer has another size");
    if (fb.pitch != 4 * width)
        panic("the framebuffer's rows are not packed");
    return fb;
}

uint32_t framebuffer_page(const struct framebuffer *fb, uint32_t page)
{
    return (fb->address & 0x3fffffffu) + BUS_ALIAS + page * fb->height * fb->pitch;
}

void framebuffer_show(const struct framebuffer *fb, uint32_t page)
{
    uint32_t offset[2] = {0, page * fb->height};
    property(TAG_SET_VIRTUAL_OFFSET, 2, offset);
}
