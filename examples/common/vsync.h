/* The display's vertical sync. */
#ifndef VSYNC_H
#define VSYNC_H

void vsync_start(void);

/* Wait for the display; without the interrupt (config.txt: fake_vsync_isr=1), as long as a frame. */
void vsync_wait(void);

#endif
