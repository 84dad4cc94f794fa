/* PL011 UART: 8N1 at 115200 baud from the 48 MHz clock that config.txt asks for. */
#include "board.h"

#define GPFSEL1 (PERIPHERALS + 0x200004)
#define GPPUD (PERIPHERALS + 0x200094)
#define GPPUDCLK0 (PERIPHERALS + 0x200098)

#define UART (PERIPHERALS + 0x201000)
#define UART_DR (UART + 0x00)
#define UART_FR (UART + 0x18)
#define UART_IBRD (UART + 0x24)
#define UART_FBRD (UART + 0x28)
#define UART_LCRH (UART + 0x2c)
#define UART_CR (UART + 0x30)
#define UART_ICR (UART + 0x44)

#define FR_TRANSMIT_FULL (1u << 5)

void uart_start(void)
{
    put32(UART_CR, 0);

    uint32_t select = get32(GPFSEL1);
    select &= ~(7u << 12 | 7u << 15);
    select |= 4u << 12 | 4u << 15; /* GPIO 14 and 15: alternate function 0 */
    put32(GPFSEL1, select);

    put32(GPPUD, 0); /* no pull resistors: set, wait 150 cycles, clock in, wait, release */
    wait_microseconds(2);
    put32(GPPUDCLK0, 1u << 14 | 1u << 15);
    wait_microseconds(2);
    put32(GPPUDCLK0, 0);

    put32(UART_ICR, 0x7ff);
    put32(UART_IBRD, 26); /* 48 MHz / (16 * 115200) = 26 + 3/64 */
    put32(UART_FBRD, 3);
    put32(UART_LCRH, 3u << 5 | 1u << 4); /* 8 bits, FIFOs on */
    put32(UART_CR, 1u << 9 | 1u << 8 | 1u << 0);
}

static void put(char c)
{
    while (get32(UART_FR) & FR_TRANSMIT_FULL) {
    }
    put32(UART_DR, (uint8_t)c);
}

void print(const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            put('\r');
        put(*text);
    }
}

void print_hex(uint32_t value)
{
    print("0x");
    for (int shift = 28; shift >= 0; shift -= 4)
        put("0123456789abcdef"[value >> shift & 15]);
}

void print_number(uint32_t value)
{
    char digits[11];
    int at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    print(digits + at);
}

void print_line(const char *text)
{
    print(text);
    print("\n");
}

void print_value(const char *name, uint32_t value)
{
    print(name);
    print(" ");
    print_hex(value);
    print("\n");
}
