"""Linux's numbers of the keys and buttons that a window sees (linux/input-event-codes.h).

SDL numbers keys by their place on the keyboard, as USB does (HID usage tables, page 7): what is
printed on them is the program's business.
"""

from __future__ import annotations

_RUNS = (
    # the letters from A on
    (4, (30, 48, 46, 32, 18, 33, 34, 35, 23, 36, 37, 38, 50)),
    (17, (49, 24, 25, 16, 19, 31, 20, 22, 47, 17, 45, 21, 44)),
    # 1 to 9 and 0
    (30, range(2, 12)),
    # return, escape, backspace, tab, space, - = [ ] \ # ; ' ` , . / and caps lock
    (40, (28, 1, 14, 15, 57, 12, 13, 26, 27, 43, 43, 39, 40, 41, 51, 52, 53, 58)),
    # F1 to F12
    (58, (*range(59, 69), 87, 88)),
    # print, scroll lock, pause, insert, home, page up, delete, end, page down
    (70, (99, 70, 119, 110, 102, 104, 111, 107, 109)),
    # right, left, down, up
    (79, (106, 105, 108, 103)),
    # the key pad: num lock, / * - +, enter, 1 to 9, 0 and .
    (83, (69, 98, 55, 74, 78, 96, 79, 80, 81, 75, 76, 77, 71, 72, 73, 82, 83)),
    # the key beside the left shift, menu, power, = of the key pad, F13 to F24
    (100, (86, 127, 116, 117, *range(183, 195))),
    # mute, louder, softer
    (127, (113, 115, 114)),
    # keys of Japanese and Korean keyboards
    (135, (89, 93, 124, 92, 94)),
    (144, (122, 123)),
    # control, shift, alt and the windows key, left and right
    (224, (29, 42, 56, 125, 97, 54, 100, 126)),
)
KEY_OF_SCANCODE = {first + n: key for first, run in _RUNS for n, key in enumerate(run)}
"""Linux's KEY_ number by SDL's scan code."""
BUTTON_OF_MOUSE = {1: 0x110, 2: 0x112, 3: 0x111, 6: 0x113, 7: 0x114}
"""Linux's BTN_ number by SDL's: left, middle, right, side, extra. 4 and 5 are the wheel."""
LEFT_CONTROL, RIGHT_CONTROL, LEFT_ALT, RIGHT_ALT, KEY_G = 29, 97, 56, 100, 34
