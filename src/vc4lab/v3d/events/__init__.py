"""What may be observed of a V3D: one kind of event for each thing that happens in it.

`V3D.listeners` has an attribute for each kind, with any number of listeners (`listeners.py`)::

    with v3d.listeners.frame_done.subscribe(lambda event: print(event.frames)):
        ...

Listeners only observe: none changes a byte of what is drawn or selects another implementation.
Where native code has to say more than it does otherwise, it is compiled from the same source with
recording added, and called only while there is a listener (`FrameDrawn`, `RecordExecuted`,
`RecordsNoted`, `ListBinned`, `FrameWork`, `ProgramRecorded`), or notes each draw, of which Python
makes events afterwards (`MemoryUse`). No event is made without a listener.

All events come in the thread that accesses the V3D's registers, never in the threads that draw
tiles. A listener may read the V3D's registers' values, but must not access its bus. When it raises,
the work at hand is done to its end, and the access to the V3D's bus that had it done raises
(`V3D.read`, `write`, `settle`; where there is guest time, the event at which the work shows).
"""

from vc4lab.v3d.events.frames import DrawPrepared as DrawPrepared
from vc4lab.v3d.events.frames import FrameDrawn as FrameDrawn
from vc4lab.v3d.events.frames import PreparedPipeline as PreparedPipeline
from vc4lab.v3d.events.frames import TileDrawn as TileDrawn
from vc4lab.v3d.events.listeners import V3DListeners as V3DListeners
from vc4lab.v3d.events.lists import BinningDone as BinningDone
from vc4lab.v3d.events.lists import CachesCleared as CachesCleared
from vc4lab.v3d.events.lists import FrameDone as FrameDone
from vc4lab.v3d.events.lists import InterruptLine as InterruptLine
from vc4lab.v3d.events.lists import JobEnded as JobEnded
from vc4lab.v3d.events.lists import JobStarted as JobStarted
from vc4lab.v3d.events.lists import MemoryUse as MemoryUse
from vc4lab.v3d.events.lists import RecordExecuted as RecordExecuted
from vc4lab.v3d.events.lists import RecordsNoted as RecordsNoted
from vc4lab.v3d.events.lists import ThreadState as ThreadState
from vc4lab.v3d.events.programs import ProgramCompiled as ProgramCompiled
from vc4lab.v3d.events.programs import ProgramEnded as ProgramEnded
from vc4lab.v3d.events.programs import ProgramKind as ProgramKind
from vc4lab.v3d.events.programs import ProgramRecorded as ProgramRecorded
from vc4lab.v3d.events.programs import ProgramStarted as ProgramStarted
from vc4lab.v3d.events.work import DrawWork as DrawWork
from vc4lab.v3d.events.work import FrameWork as FrameWork
from vc4lab.v3d.events.work import ListBinned as ListBinned
