"""What is on the card: kernels, config.txt, and everything that can be wrong with them."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.soc.board import BOARDS
from vc4lab.soc.boot.config_txt import parse_config
from vc4lab.soc.boot.firmware import BootError, plan_boot

PI2 = BOARDS["pi2"]
CODE = bytes.fromhex("feffffea")


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(BootError) as error:
        plan_boot(path, PI2, Reporter())
    return error.value.diagnostic.code, error.value.diagnostic.message


def test_prefers_kernel7(tmp_path):
    (tmp_path / "kernel.img").write_bytes(b"old!")
    assert plan_boot(tmp_path, PI2, Reporter()).name == "kernel.img"
    (tmp_path / "KERNEL7.IMG").write_bytes(CODE)
    plan = plan_boot(tmp_path, PI2, Reporter())
    assert (plan.name, plan.image, plan.address) == ("KERNEL7.IMG", CODE, 0x8000)
    assert plan.entry_registers == (0, 0xC43, 0x100)


def test_kernel_key_and_address(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.bin").write_bytes(CODE)
    (tmp_path / "config.txt").write_text("kernel=SUB/mine.bin\nkernel_address=0x10000\n")
    plan = plan_boot(tmp_path, PI2, Reporter())
    assert (plan.name, plan.address) == ("mine.bin", 0x10000)


def test_missing_kernel_names_the_led_code(tmp_path):
    code, text = refused(tmp_path)
    assert code == "BOOT-002"
    assert "kernel7.img or kernel.img" in text
    assert "flash 7 times: kernel image not found" in text
    (tmp_path / "kernel8.img").write_bytes(CODE)
    assert "AArch64" in refused(tmp_path)[1]


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../secret", "..", "\\..\\secret"])
def test_kernel_key_cannot_leave_the_card(tmp_path, name):
    card = tmp_path / "card"
    card.mkdir()
    (tmp_path / "secret").write_bytes(CODE)
    (card / "config.txt").write_text(f"kernel={name}\n")
    assert refused(card)[0] == "BOOT-002"


def test_links_out_of_the_card_are_not_followed(tmp_path):
    card = tmp_path / "card"
    card.mkdir()
    (tmp_path / "secret").write_bytes(CODE)
    (card / "kernel7.img").symlink_to(tmp_path / "secret")
    assert refused(card)[0] == "BOOT-002"


POINTER = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f"
    b"32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize(
    ("data", "what"), [(POINTER, "Git LFS pointer"), (b"\n<!DOCTYPE html><html>", "web page")]
)
def test_a_download_that_is_not_the_kernel(tmp_path, data, what, bare):
    image = tmp_path / "kernel7.img"
    image.write_bytes(data)
    code, text = refused(image if bare else tmp_path)
    assert code == "BOOT-019"
    assert f"kernel7.img is a {what}" in text


def test_a_ram_disk_that_is_a_pointer(tmp_path):
    (tmp_path / "kernel7.img").write_bytes(CODE)
    (tmp_path / "disk.gz").write_bytes(POINTER)
    (tmp_path / "config.txt").write_text("initramfs disk.gz followkernel")
    reporter = Reporter()
    plan_boot(tmp_path, PI2, reporter)
    (item,) = reporter.items
    assert item.code == "BOOT-013"
    assert "Git LFS pointer" in item.message


def test_empty_oversized_elf_and_odd_images(tmp_path):
    image = tmp_path / "kernel7.img"
    image.write_bytes(b"")
    assert refused(tmp_path)[0] == "BOOT-003"
    os.truncate(image, 2 << 30)
    assert refused(tmp_path)[0] == "BOOT-004"
    image.write_bytes(b"\x7fELF" + bytes(100))
    assert refused(tmp_path)[0] == "BOOT-006"
    image.write_bytes(CODE)
    (tmp_path / "config.txt").write_text("kernel_address=0x3f000000\n")
    assert refused(tmp_path)[0] == "BOOT-005"
    assert refused(tmp_path / "nothing")[0] == "BOOT-001"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert refused(fifo)[0] == "BOOT-001"


@pytest.mark.parametrize(("zeros", "warned"), [(60, False), (64, True)])
def test_a_kernel_that_begins_with_zeros_is_started(tmp_path, zeros, warned):
    (tmp_path / "kernel7.img").write_bytes(bytes(zeros) + CODE)
    reporter = Reporter()
    plan_boot(tmp_path, PI2, reporter)
    assert reporter.has("BOOT-007") == warned


def test_bare_image_uses_the_config_next_to_it(tmp_path):
    (tmp_path / "mine.img").write_bytes(CODE)
    (tmp_path / "config.txt").write_text("kernel=other.img\nfake_vsync_isr=1\n")
    plan = plan_boot(tmp_path / "mine.img", PI2, Reporter())
    assert plan.name == "mine.img"
    assert plan.config.flag("fake_vsync_isr")


def test_atags(tmp_path):
    (tmp_path / "kernel7.img").write_bytes(CODE)
    (tmp_path / "cmdline.txt").write_text("quiet x=1\nsecond line\n")
    memory = GuestMemory()
    plan_boot(tmp_path, PI2, Reporter()).place(memory, Reporter())
    assert memory.read(0x8000, 4) == CODE
    tags, at = {}, 0x100
    while memory.u32(at):
        size, tag = memory.u32(at), memory.u32(at + 4)
        tags[tag] = memory.read(at + 8, 4 * size - 8)
        at += 4 * size
    assert memory.u32(at + 4) == 0
    assert list(tags) == [0x54410001, 0x54410002, 0x54410009]
    assert struct.unpack("<2I", tags[0x54410002]) == (0x3C000000, 0)
    assert tags[0x54410009].rstrip(b"\0") == b"quiet x=1"


def test_config_filters_and_numbers():
    text = """
    # a comment
    hdmi_group=2
    [pi1]
    hdmi_mode=16
    [pi2]
    hdmi_mode=9
    [all]
    framebuffer_width=0x140
    dtparam=audio=on
    gpu_mem=many
    """
    reporter = Reporter()
    config = parse_config(text, PI2.filters, reporter)
    assert config.display_mode() == (800, 600, 60)
    assert config.integer("framebuffer_width") == 320
    assert config.get("dtparam") == "audio=on"
    assert config.integer("gpu_mem", 64) == 64
    assert reporter.items == []


def test_config_nonsense_is_reported_by_line():
    reporter = Reporter()
    parse_config(
        "what is this\n[pi17]\n[all]\nfaek_vsync_isr=1\n" + "x" * 200 + "\ninclude more.txt\n=\n",
        PI2.filters,
        reporter,
    )
    assert [item.code for item in reporter.items] == [
        "BOOT-010", "BOOT-011", "BOOT-014", "BOOT-012", "BOOT-010", "BOOT-013", "BOOT-010",
    ]  # fmt: skip
    assert "line 1" in reporter.items[0].message


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("utf-8", "replace")))
def test_any_config_is_survived(text):
    reporter = Reporter()
    config = parse_config(text, PI2.filters, reporter)
    config.display_mode()
    for key in config.values:
        config.integer(key)
    assert all(item.message.isprintable() for item in reporter.items)


def test_tags_over_an_image_at_0(tmp_path):
    (tmp_path / "kernel7.img").write_bytes(CODE * 100)
    config = tmp_path / "config.txt"
    for text, count in (("kernel_old=1", 1), ("kernel_old=1\ndisable_commandline_tags=1", 0)):
        config.write_text(text)
        reporter = Reporter()
        memory = GuestMemory()
        plan_boot(tmp_path, PI2, reporter).place(memory, reporter)
        assert reporter.counts["BOOT-021"] == count
        assert (memory.read(0x100, 4) == CODE) == (count == 0)
