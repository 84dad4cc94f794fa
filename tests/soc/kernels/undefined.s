@ An undefined instruction without any handler.
.include "common.inc"
.global _start
_start:
    udf #0
