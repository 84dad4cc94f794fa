/* The green activity LED is somewhere else on almost every board. */
#include "irq_timer.h"
#include "mailbox.h"
#include "model.h"

#define GPIO (PERIPHERALS + 0x200000)
#define GPFSEL(pin) (GPIO + 4 * ((pin) / 10))
#define GPSET(pin) (GPIO + 0x1c + 4 * ((pin) / 32))
#define GPCLR(pin) (GPIO + 0x28 + 4 * ((pin) / 32))

enum { TAG_SET_EXPANDER = 0x38041, EXPANDER_LED = 130 };

static uint32_t pin;
static bool inverted, behind_firmware;

void led_start(void)
{
    switch (board_model()) {
    case MODEL_A:
    case MODEL_B:
        pin = 16;
        inverted = true;
        break;
    case MODEL_ZERO:
    case MODEL_ZERO_W:
        pin = 47;
        inverted = true;
        break;
    case MODEL_3B:
        behind_firmware = true;
        return;
    case MODEL_3B_PLUS:
    case MODEL_3A_PLUS:
        pin = 29;
        break;
    default:
        pin = 47;
    }
    uint32_t shift = 3 * (pin % 10);
    put32(GPFSEL(pin), (get32(GPFSEL(pin)) & ~(7u << shift)) | 1u << shift); /* an output */
    led_switch(false);
}

bool led_is_behind_firmware(void)
{
    return behind_firmware;
}

void led_switch(bool on)
{
    put32(on != inverted ? GPSET(pin) : GPCLR(pin), 1u << pin % 32);
}

void led_switch_by_firmware(bool on)
{
    uint32_t state[2] = {EXPANDER_LED, on};
    property(TAG_SET_EXPANDER, 2, state);
}
