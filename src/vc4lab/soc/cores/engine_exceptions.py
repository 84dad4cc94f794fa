"""Numbers by which the engine names the exceptions it hands over (QEMU's target/arm/cpu.h)."""

from __future__ import annotations

ENGINE_SVC, ENGINE_PREFETCH, ENGINE_DATA, ENGINE_BKPT = 2, 3, 4, 7
ENGINE_HVC, ENGINE_SMC = 11, 13
