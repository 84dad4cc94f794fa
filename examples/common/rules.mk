# How every example is built: NAME.qasm → C array (vc4lab asm), C and assembly → one flat kernel7.img.
# The compiler gets nothing that depends on the place or time of the build.
#
#   make            build/kernel7.img
#   make install    … and copy it to sdcard/

CROSS  ?= arm-none-eabi-
VC4LAB ?= vc4lab
BUILD  ?= build
COMMON := ../common

CFLAGS := -mcpu=cortex-a7 -mfpu=vfpv4-d16 -mfloat-abi=hard -marm -mno-unaligned-access -O2 -std=c11 \
          -ffreestanding -fno-ident -fno-common -fno-stack-protector -fno-pic \
          -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -ffunction-sections \
          -fdata-sections -ffp-contract=off -Wall -Wextra -Werror -I$(COMMON) -I$(BUILD)
LDFLAGS := -nostdlib -static -Wl,--build-id=none -Wl,--gc-sections -Wl,-z,max-page-size=4096 \
           -Wl,--no-warn-rwx-segments

SOURCES += timer.c uart.c panic.c mailbox.c memory.c
OBJECTS := $(BUILD)/start.o $(SOURCES:%.c=$(BUILD)/%.o)
HEADERS := $(SHADERS:%.qasm=$(BUILD)/%.h)

vpath %.c . $(COMMON)
vpath %.S $(COMMON)

$(BUILD)/kernel7.img: $(BUILD)/kernel7.elf
	$(CROSS)objcopy -O binary $< $@

$(BUILD)/kernel7.elf: $(OBJECTS) $(COMMON)/link.ld
	$(CROSS)gcc $(CFLAGS) $(LDFLAGS) -T $(COMMON)/link.ld -o $@ $(OBJECTS)

$(BUILD)/%.o: %.c $(HEADERS) $(wildcard *.h $(COMMON)/*.h) | $(BUILD)
	$(CROSS)gcc $(CFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.S | $(BUILD)
	$(CROSS)gcc $(CFLAGS) -c -o $@ $<

$(BUILD)/%.h: %.qasm | $(BUILD)
	$(VC4LAB) asm $< --output $@ --format c

$(BUILD):
	mkdir -p $@

install: $(BUILD)/kernel7.img
	cp $< sdcard/kernel7.img

clean:
	rm -rf $(BUILD)

.PHONY: install clean
.DELETE_ON_ERROR:
.SECONDARY:
