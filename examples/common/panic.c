/* Ends: quiet after the work is done, or with words on the UART. */
#include "board.h"

_Noreturn void halt(void)
{
    for (;;)
        wait_for_interrupt();
}

_Noreturn void panic(const char *text)
{
    print("\nstopped: ");
    print_line(text);
    halt();
}

_Noreturn void panic_at(const char *text, uint32_t address)
{
    print("\nstopped: ");
    print(text);
    print_value(" at", address);
    halt();
}
