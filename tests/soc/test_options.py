"""Choices for machines and V3Ds: put together once, they reach all who need them as they are."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.recorded.replay import replay
from vc4lab.memory import GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.soc.board_unknowns import DEFAULT_UNKNOWNS
from vc4lab.soc.boot.boot_extras import BootExtras
from vc4lab.soc.machine import Machine
from vc4lab.soc.options import MachineOptions
from vc4lab.v3d.core import V3D
from vc4lab.v3d.user_programs.experiment import Experiment

TESTS = Path(__file__).parents[1]
HELLO = TESTS / "soc" / "kernels" / "hello.img"
JOB = TESTS / "data" / "vc4-jobs" / "tri_arm64"
OTHERS = DEFAULT_UNKNOWNS.with_(framebuffer_address="physical")
GPU = GpuOptions("interpreter", 2, OTHERS, 1000)


def test_options_cannot_change():
    for options in (GPU, MachineOptions(gpu=GPU)):
        for field in fields(options):
            with pytest.raises(FrozenInstanceError):
                setattr(options, field.name, None)


def test_a_v3d_hands_its_options_on():
    v3d = V3D(GuestMemory(), options=GPU)
    assert v3d.programs.options is GPU
    assert (v3d.engine, v3d.unknowns) == ("interpreter", OTHERS)
    assert v3d.programs.unit.budget == 1000
    for stage in (v3d.frames.preparer.vertices, v3d.binning.coordinates):
        assert (stage.engine, stage.unknowns) == ("interpreter", OTHERS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: V3D(GuestMemory(), options=GPU, engine="interpreter"),
        lambda: Machine(HELLO, "pi3", options=MachineOptions("pi1")),
        lambda: Machine(HELLO, options=MachineOptions("pi1"), firmware="2015"),
        lambda: Experiment(bytes(8), gpu=GPU, budget=1000),
        lambda: replay(JOB, gpu=GPU, threads=2),
        lambda: DrmDevice(gpu=GPU, unknowns=OTHERS),
    ],
)
def test_choices_come_one_way(make):
    with pytest.raises(TypeError, match="not both ways"):
        make()


def test_keywords_and_options_mean_the_same():
    v3d = V3D(GuestMemory(), engine="interpreter", threads=2, unknowns=OTHERS)
    assert v3d.programs.options == GpuOptions("interpreter", 2, OTHERS)
    assert V3D(GuestMemory(), options=GpuOptions(threads=3)).frames.tile_threads.threads == 3


def test_a_machine_hands_its_options_on():
    extras = BootExtras("a=1")
    options = MachineOptions("pi1", caches="check", extras=extras, gpu=GPU)
    machine = Machine(HELLO, reporter=Reporter(), options=options)
    assert machine.board.name == "pi1"
    assert machine.caches is not None
    assert machine.config.command_line == "a=1"
    machine.v3d_bridge.switch("clock", True)
    assert machine.v3d.programs.options is GPU
    assert machine.videocore.unknowns is OTHERS


def test_a_machine_by_keywords():
    machine = Machine(HELLO, "pi3", engine="interpreter", firmware="2015", unknowns=OTHERS)
    machine.v3d_bridge.switch("clock", True)
    options = machine.v3d.programs.options
    assert (machine.board.name, options.engine) == ("pi3", "interpreter")
    assert options.unknowns == OTHERS.with_(
        hyp_start="svc",
        monitor_call="undefined",
        framebuffer_alpha="mode",
        framebuffer_order_channel_1="rgb",
        parked_cores="polling",
        uart_clock="3mhz",
    )


def test_a_forgiving_machine_has_a_forgiving_v3d():
    for machine in (
        Machine(HELLO, forgiving=True),
        Machine(HELLO, options=MachineOptions(gpu=GpuOptions(forgiving=True))),
    ):
        machine.v3d_bridge.switch("clock", True)
        assert machine.hardware.forgiving
        assert machine.v3d.programs.options.forgiving
    assert not MachineOptions().forgiving
    assert not Machine(HELLO).hardware.forgiving


def test_an_experiment_hands_its_options_on():
    assert Experiment(bytes(8), gpu=GPU).programs.unit.budget == 1000
    assert Experiment(bytes(8), threads=2, budget=9).programs.options == GpuOptions(threads=2, budget=9)


def test_a_device_and_a_replay_hand_theirs_on():
    with DrmDevice(gpu=GPU) as device:
        assert device.v3d.programs.options is GPU
    plain = replay(JOB, number=1)
    for gpu in (GpuOptions("interpreter"), GpuOptions(threads=2)):
        assert replay(JOB, number=1, gpu=gpu).image.tobytes() == plain.image.tobytes()
