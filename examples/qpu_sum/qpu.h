/* Programs of one's own on the QPUs, without control lists. */
#ifndef QPU_H
#define QPU_H

#include "board.h"

enum { QPUS = 12 };

/* One QPU's start: bus addresses of its uniforms and of its first instruction. In this order the firmware
 * wants them, too. */
struct qpu_start {
    uint32_t uniforms;
    uint32_t code;
};

/* Both wait until all have ended and stop the program with words if that takes a second. v3d_start() comes
 * first. */

/* By the V3D's own queue of user programs. */
void qpu_run(const struct qpu_start starts[], uint32_t count);

/* By the firmware ("execute QPU"), which waits for an interrupt of every QPU. */
void qpu_run_by_firmware(const struct qpu_start starts[], uint32_t count);

#endif
