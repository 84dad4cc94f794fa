/* Revision words: the first boards were numbered as they came, later words have fields. */
#include "model.h"
#include "mailbox.h"

enum { TAG_BOARD_REVISION = 0x10002, HAS_FIELDS = 1 << 23, FIRST_PLUS = 0x10 };

enum model board_model(void)
{
    uint32_t revision[1] = {0};
    if (!property(TAG_BOARD_REVISION, 1, revision))
        panic("the firmware does not know its board");
    if (revision[0] & HAS_FIELDS)
        return (enum model)(revision[0] >> 4 & 0xff);
    return (revision[0] & 0xff) < FIRST_PLUS ? MODEL_B : MODEL_B_PLUS;
}
