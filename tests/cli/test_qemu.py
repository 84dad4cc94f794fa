"""QEMU's options as ours."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.cli.qemu import SINGLE_DASH, is_qemu, translate

HELLO = Path(__file__).parent.parent / "soc" / "kernels" / "hello.img"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("-M raspi2b -kernel F -serial stdio", "--board pi2 F --serial stdio"),
        ("-machine raspi3b -kernel F -nographic", "--board pi3 F --headless --serial stdio"),
        ("-M raspi0 -kernel F -serial null -serial stdio", "--board zero F --serial stdio"),
        ("-M raspi1ap -kernel F -display none", "--board pi1 F --headless"),
        ("-M raspi2b -kernel F -display gtk", "--board pi2 F --window"),
        ("-M raspi2b -kernel F -s", "--board pi2 F --gdb 1234 --no-gdb-wait"),
        ("-M raspi2b -kernel F -s -S", "--board pi2 F --gdb 1234 --gdb-wait"),
        ("-M raspi2b -kernel F -S -gdb tcp::99", "--board pi2 F --gdb 99 --gdb-wait"),
        ("-M raspi3b -sd card.img", "--board pi3 card.img"),
        ("-M raspi3b -bios F -append a=1 -initrd R", "--board pi3 F --append a=1 --initrd R"),
        ("-M raspi3b -kernel F -dtb x.dtb", "--board pi3 F --dtb x.dtb"),
        ("-M raspi3b -kernel F -d int -D L", "--board pi3 F --trace irq --trace-to L"),
        ("-M raspi2b -device loader,file=F,addr=0x8000,cpu-num=0", "--board pi2 F --load-address 0x8000"),
        (
            "-M raspi2b -device loader,file=F,addr=0 -device loader,file=F,addr=0,cpu-num=1",
            "--board pi2 F --load-address 0",
        ),
        ("-M raspi0 -kernel F -full-screen -k de -net none -nodefaults", "--board zero F"),
        ("-M raspi3b -drive file=card.img,if=sd,format=raw", "--board pi3 card.img"),
        ("-M raspi3b -kernel k.img -sd card.img", "--board pi3 k.img --card card.img"),
        ("-M raspi2b -kernel F -m 1G -smp 4 --frames 3", "--board pi2 F --frames 3"),
        ("-M raspi2b -kernel F -serial mon:stdio", "--board pi2 F --serial stdio"),
        ("-M raspi2b -kernel F -serial tcp::77,server", "--board pi2 F --serial tcp::77,server"),
    ],
)
def test_what_people_type(theirs, ours):
    assert is_qemu(theirs.split())
    assert translate(theirs.split())[0] == ours.split()


def test_what_is_left_out_is_said():
    _out, remarks = translate(["-M", "raspi2b", "-kernel", "F", "-m", "1G", "-usb"])
    assert remarks == ["-m 1G has no meaning here", "-usb has no meaning here"]


@pytest.mark.parametrize("text", ["-M virt", "-kernel", "-serial vc", "-gdb tcp::x", "-M"])
def test_what_cannot_be(text):
    with pytest.raises(ValueError, match="-"):
        translate(text.split())


def test_our_own_options_are_not_theirs():
    assert not is_qemu(["sdcard", "--serial", "stdio", "-h"])


WORDS = [*(f"-{name}" for name in sorted(SINGLE_DASH)), "raspi2b", "x", "--frames"]


@given(st.lists(st.sampled_from(WORDS)))
def test_nonsense(arguments):
    try:
        out, _remarks = translate(arguments)
    except ValueError:
        return
    assert all(isinstance(word, str) for word in out)


def test_boot_as_in_qemu():
    words = ["boot", "-M", "raspi2b", "-kernel", str(HELLO), "-nographic", "-m", "1G"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "hello from the ARM" in result.output
    assert "-m 1G has no meaning here" in result.output
    result = CliRunner().invoke(app, ["boot", "-M", "virt", "-kernel", str(HELLO)])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "raspi2b" in result.output


def test_command_line_and_files_beside_the_card(tmp_path):
    from vc4lab.soc.boot.boot_extras import BootExtras
    from vc4lab.soc.boot.tree.device_tree import device_tree
    from vc4lab.soc.machine import Machine

    (tmp_path / "rd").write_bytes(b"ramdisk!")
    (tmp_path / "t.dtb").write_bytes(device_tree("A model", "chip", 1, 2, 3, ""))
    image = tmp_path / "kernel7.img"
    image.write_bytes(HELLO.read_bytes())
    (tmp_path / "config.txt").write_text("kernel_old=1\ninitramfs other 0x5000\n")
    machine = Machine(image, extras=BootExtras("a=1 b", tmp_path / "rd", None, 0x9000))
    assert machine.plan.address == machine.plan.entry == 0x9000
    assert machine.config.command_line == "a=1 b"
    assert machine.memory.read(0xA000, 8) == b"ramdisk!"
    assert b"a=1 b" in machine.memory.read(0x100, 256)
    machine = Machine(image, extras=BootExtras(device_tree=tmp_path / "t.dtb"))
    tree = machine.plan.entry_registers[2]
    assert b"A model" in machine.memory.read(tree, 400)


@pytest.mark.parametrize("words", ["--initrd NONE", "--dtb .", "--load-address x"])
def test_files_that_are_none(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["boot", str(HELLO), *words.split()])
    assert result.exit_code == ExitCode.BAD_INPUT
