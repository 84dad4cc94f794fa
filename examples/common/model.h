/* Which board this is, by the firmware's revision word. */
#ifndef MODEL_H
#define MODEL_H

/* The numbers of bits 11:4 of newer revision words. */
enum model {
    MODEL_A = 0x00,
    MODEL_B = 0x01,
    MODEL_A_PLUS = 0x02,
    MODEL_B_PLUS = 0x03,
    MODEL_2B = 0x04,
    MODEL_3B = 0x08,
    MODEL_ZERO = 0x09,
    MODEL_ZERO_W = 0x0c,
    MODEL_3B_PLUS = 0x0d,
    MODEL_3A_PLUS = 0x0e,
};

enum model board_model(void);

#endif
