"""One instruction of vc4asm's dialect: operations that find their places, and the word."""
