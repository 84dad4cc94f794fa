"""Display lists, and a program's side of the display."""

HVS, PV2, HDMI = 0x400000, 0x807000, 0x902000
LISTS = HVS + 0x2000
VALID, END, UNITY = 1 << 30, 1 << 31, 1 << 4
RGBA8888, RGB565 = 7, 4
BGRA, RGB_ORDER = 3, 2
FIXED = 1 << 30
PICTURE = 0x100000
PIXEL_VALVE_LINE = 42


def plane(
    kind, order, size, address, pitch, *, at=(0, 0), alpha=255, mode=FIXED, tiling=0, scaled=None,
    more=0,
):  # fmt: skip
    """The words of a plane."""
    width, height = size
    words = [at[1] << 12 | at[0] | alpha << 24]
    if scaled is not None:
        words.append(scaled[1] << 16 | scaled[0])
    words += [mode | height << 16 | width, 0xC0C0C0C0, address | 0xC0000000, 0xC0C0C0C0, pitch]
    unity = UNITY if scaled is None else 0
    control = VALID | len(words) + 1 << 24 | tiling << 20 | order << 13 | unity | kind | more
    return [control, *words]


class Display:
    def __init__(self, machine):
        self.machine = machine

    def __getitem__(self, at):
        return self.machine.bus.read(at, 4)

    def __setitem__(self, at, value):
        self.machine.bus.write(at, 4, value)

    def show(self, words, start=64):
        for number, word in enumerate(words):
            self[LISTS + 4 * (start + number)] = word
        self[HVS + 0x24] = start

    def start(self, width, height, pixel_divider=10):
        """A mode with 40 blank columns and 30 blank lines on HDMI's channel."""
        self[0x102000 + 0x560] = 0x5A000000 | pixel_divider
        self[HVS] = 1 << 31
        self[HVS + 0x50] = 1 << 31 | width << 12 | height
        self[PV2 + 0x0C], self[PV2 + 0x10] = 20 << 16 | 10, 10 << 16 | width
        self[PV2 + 0x14], self[PV2 + 0x18] = 20 << 16 | 5, 5 << 16 | height
        self[PV2] = 1
        self[PV2 + 4] = 3
