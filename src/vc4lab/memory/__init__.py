"""Guest RAM, shared by CPU, GPU and clients without copies."""

from vc4lab.memory.guest import ADDRESS_BITS as ADDRESS_BITS
from vc4lab.memory.guest import BUS_PERIPHERALS as BUS_PERIPHERALS
from vc4lab.memory.guest import MEMORY_MASK as MEMORY_MASK
from vc4lab.memory.guest import MEMORY_SIZE as MEMORY_SIZE
from vc4lab.memory.guest import PAD as PAD
from vc4lab.memory.guest import GuestMemory as GuestMemory
from vc4lab.memory.guest import SharedFile as SharedFile
from vc4lab.memory.host import lazy_zeros as lazy_zeros
