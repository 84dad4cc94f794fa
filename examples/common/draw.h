/* Drawing without the GPU into a 32-bit framebuffer. The caller keeps inside the picture. */
#ifndef DRAW_H
#define DRAW_H

#include "mailbox.h"

/* A colour as it lies in memory: red in bits 7:0. */
#define RGB(red, green, blue) (0xff000000u | (blue) << 16 | (green) << 8 | (red))

enum { TEXT_HEIGHT = 7, TEXT_WIDTH = 6 }; /* of a character, in dots, the gap included */

void fill(const struct framebuffer *fb, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
          uint32_t colour);

/* Capitals, digits and + , - . / : = as squares of `dot` pixels. */
void draw_text(const struct framebuffer *fb, uint32_t x, uint32_t y, uint32_t dot,
               const char *text, uint32_t colour);
/* So many decimal digits, zeros in front. */
void draw_number(const struct framebuffer *fb, uint32_t x, uint32_t y, uint32_t dot,
                 uint32_t digits, uint32_t value, uint32_t colour);

#endif
