/* Two ways to start programs on the QPUs: the V3D's queue, and a request to the firmware. */
#include "qpu.h"
#include "mailbox.h"

#define V3D (PERIPHERALS + 0xc00000)
#define V3D_L2CACTL (V3D + 0x020)
#define V3D_SLCACTL (V3D + 0x024)
#define V3D_SRQPC (V3D + 0x430)
#define V3D_SRQUA (V3D + 0x434)
#define V3D_SRQUL (V3D + 0x438)
#define V3D_SRQCS (V3D + 0x43c)
#define V3D_VPMBASE (V3D + 0x504)
#define V3D_DBQITE (V3D + 0xe2c)
#define V3D_DBQITC (V3D + 0xe30)

#define QUEUE_ERROR (1u << 7)
#define CLEAR_REQUESTED (1u << 8)
#define CLEAR_COMPLETED (1u << 16)
#define COMPLETED(status) ((status) >> 16 & 0xff)

#define WHOLE_VPM 16u        /* for user programs: all the rows they can address, 256 bytes each */
#define UNIFORMS_UNLIMITED 1024u
#define TIMEOUT 1000000u     /* microseconds */

enum { TAG_EXECUTE_QPU = 0x30011 };

void qpu_run(const struct qpu_start starts[], uint32_t count)
{
    put32(V3D_DBQITE, 0); /* the programs' interrupts are for the firmware; here the queue is asked */
    put32(V3D_DBQITC, 0xffff);
    put32(V3D_L2CACTL, 1u << 2); /* the caches know nothing of what the CPU wrote */
    put32(V3D_SLCACTL, 0x0f0f0f0fu);
    put32(V3D_VPMBASE, WHOLE_VPM);
    put32(V3D_SRQCS, QUEUE_ERROR | CLEAR_REQUESTED | CLEAR_COMPLETED);

    for (uint32_t i = 0; i < count; i++) { /* 16 fit into the queue */
        put32(V3D_SRQUA, starts[i].uniforms);
        put32(V3D_SRQUL, UNIFORMS_UNLIMITED);
        put32(V3D_SRQPC, starts[i].code); /* this one asks for the start */
    }
    uint32_t start = microseconds();
    for (;;) {
        uint32_t status = get32(V3D_SRQCS);
        if (status & QUEUE_ERROR)
            panic("the queue of user programs has an error");
        if (COMPLETED(status) == count)
            return;
        if (passed(start, TIMEOUT)) {
            print_value("V3D_SRQCS", status);
            panic("the QPUs take too long");
        }
    }
}

void qpu_run_by_firmware(const struct qpu_start starts[], uint32_t count)
{
    uint32_t values[4] = {count, bus_address(starts), 0 /* it clears the caches */, TIMEOUT / 1000};
    if (!property(TAG_EXECUTE_QPU, 4, values))
        panic("the firmware cannot execute QPU programs");
    if (values[0]) {
        print_value("execute QPU answers", values[0]);
        panic("the QPUs take too long");
    }
}
