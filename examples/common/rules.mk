# How every example is built: NAME.qasm → C array (vc4lab asm); C and assembly → one flat image for
# every kind of board. The compilers get nothing that depends on the place or time of the build.
#
#   make            build/kernel.img, build/kernel7.img …: those of KERNELS
#   make install    … and copy them to sdcard/
#
# An example's Makefile sets, then includes this file:
#   SOURCES    its own .c and .S files and those of ../common beyond the ones every program has
#   SHADERS    its .qasm files; each becomes build/NAME.h
#   KERNELS    the images it has (kernel kernel7):
#                kernel     ARMv6, Pi Zero and 1        kernel7    ARMv7, Pi 2 and Pi 3 in 32 bits
#                kernel8    AArch64, Pi 3

KERNELS ?= kernel kernel7
VC4LAB  ?= vc4lab
BUILD   ?= build
CROSS32 ?= arm-none-eabi-
CROSS64 ?= aarch64-linux-gnu-
COMMON  := ../common

ARM32 := -mfloat-abi=hard -marm -mno-unaligned-access

CROSS_kernel  := $(CROSS32)
CPU_kernel    := -mcpu=arm1176jzf-s -mfpu=vfpv2 $(ARM32)
LOAD_kernel   := 0x8000
START_kernel  := start

CROSS_kernel7 := $(CROSS32)
CPU_kernel7   := -mcpu=cortex-a7 -mfpu=vfpv4-d16 $(ARM32)
LOAD_kernel7  := 0x8000
START_kernel7 := start

CROSS_kernel8 := $(CROSS64)
CPU_kernel8   := -mcpu=cortex-a53 -mstrict-align
LOAD_kernel8  := 0x80000
START_kernel8 := start64

CFLAGS := -O2 -std=c11 \
          -ffreestanding -fno-ident -fno-common -fno-stack-protector -fno-pic \
          -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -ffunction-sections \
          -fdata-sections -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror -I$(COMMON) -I$(BUILD)
LDFLAGS := -nostdlib -static -Wl,--build-id=none -Wl,--gc-sections -Wl,-z,max-page-size=4096 \
           -Wl,--no-warn-rwx-segments

SOURCES += timer.c uart.c panic.c mailbox.c memory.c
HEADERS := $(SHADERS:%.qasm=$(BUILD)/%.h)
IMAGES  := $(KERNELS:%=$(BUILD)/%.img)

all: $(IMAGES)

vpath %.c . $(COMMON)
vpath %.S . $(COMMON)

# $(1): a name of KERNELS. Its objects are in a directory of their own.
define kernel_rules
OBJECTS_$(1) := $$(addprefix $(BUILD)/$(1)/,$$(addsuffix .o,$(START_$(1)) $$(basename $$(SOURCES))))

$(BUILD)/$(1).img: $(BUILD)/$(1).elf
	$$(CROSS_$(1))objcopy -O binary $$< $$@

$(BUILD)/$(1).elf: $$(OBJECTS_$(1)) $$(COMMON)/link.ld
	$$(CROSS_$(1))gcc $$(CPU_$(1)) $$(CFLAGS) $$(LDFLAGS) -Wl,--defsym=LOAD_ADDRESS=$$(LOAD_$(1)) \
	    -T $$(COMMON)/link.ld -o $$@ $$(OBJECTS_$(1))

$(BUILD)/$(1)/%.o: %.c $$(HEADERS) $$(wildcard *.h $$(COMMON)/*.h) | $(BUILD)/$(1)
	$$(CROSS_$(1))gcc $$(CPU_$(1)) $$(CFLAGS) -c -o $$@ $$<

$(BUILD)/$(1)/%.o: %.S $$(wildcard $$(COMMON)/*.inc) | $(BUILD)/$(1)
	$$(CROSS_$(1))gcc $$(CPU_$(1)) $$(CFLAGS) -c -o $$@ $$<

$(BUILD)/$(1):
	mkdir -p $$@
endef
$(foreach kernel,$(KERNELS),$(eval $(call kernel_rules,$(kernel))))

$(BUILD)/%.h: %.qasm | $(BUILD)
	$(VC4LAB) asm $< --output $@ --format c

$(BUILD):
	mkdir -p $@

install: $(IMAGES)
	install -m 644 $(IMAGES) sdcard/

# Which images these are, for those who ask.
kernels:
	@echo $(KERNELS)

clean:
	rm -rf $(BUILD)

.PHONY: all install kernels clean
.DELETE_ON_ERROR:
.SECONDARY:
