"""A booted Linux under a debugger and a trace: functions of vc4.ko where they are."""

import re
import threading
from collections.abc import Callable

from tests.soc.debug.gdb_client import GdbClient

from vc4lab.linux.running import Linux
from vc4lab.soc.debug.gdb_server import GdbServer
from vc4lab.soc.debug.trace import Tracer, parse_categories

PC = 32
"""Of AArch64's registers."""


def test_a_breakpoint_in_the_module_and_a_trace_that_names_its_functions(linux: Callable[..., Linux]) -> None:
    guest = linux()
    text = guest.run("grep ' vc4_submit_cl_ioctl' /proc/kallsyms").output
    address = int(text.split()[0], 16)
    server, seen = GdbServer(guest.machine, 0), []

    def client() -> None:
        gdb = GdbClient(server.port)
        gdb.ask("?")
        assert gdb.ask(f"Z1,{address:x},4") == "OK"
        gdb.send("c")
        gdb.receive()
        seen.append(int.from_bytes(bytes.fromhex(gdb.ask(f"p{PC:x}")), "little"))
        gdb.ask("D")
        gdb.close()

    thread = threading.Thread(target=client)
    thread.start()
    done = guest.run(["kmscube"], frames=4)
    thread.join(60)
    server.close()
    assert seen == [address]
    assert done.code is None
    lines: list[object] = []
    Tracer(guest.machine, parse_categories("mmio,irq"), lines.append)
    guest.wait(frames=4)
    trace = "\n".join(map(str, lines))
    assert re.search(r"<vc4_crtc_irq_handler\+0x\w+ \[vc4\]> +mmio +write +pv2\.INTSTAT", trace)
    assert re.search(r"<vc4_\w+\+0x\w+ \[vc4\]> +mmio +write +hvs\.lists\[\d+\]", trace)
