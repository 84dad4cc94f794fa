/* Talking to the firmware: mailbox words, property messages, the framebuffer. */
#ifndef MAILBOX_H
#define MAILBOX_H

#include "board.h"

enum { MAILBOX_FRAMEBUFFER = 1, MAILBOX_PROPERTIES = 8 };

/* Send a 16-byte aligned message to a channel and wait for the answer. */
void mailbox_call(uint32_t channel, volatile void *message);

/* One property tag with up to 4 words of values, in and out. False: the firmware does not know it. */
bool property(uint32_t tag, uint32_t words, uint32_t *values);

struct framebuffer {
    uint32_t width, height; /* of one page, in pixels */
    uint32_t pages;
    uint32_t pitch;   /* bytes from row to row */
    uint32_t address; /* bus address */
};

/* 32 bits a pixel, bytes red, green, blue, alpha (ignored): what the V3D stores as rgba8888. */
struct framebuffer framebuffer_open(uint32_t width, uint32_t height, uint32_t pages);
uint32_t framebuffer_page(const struct framebuffer *fb, uint32_t page);
void framebuffer_show(const struct framebuffer *fb, uint32_t page);

#endif
