"use strict";
/* The picture: zoom, a picker, what a draw changed. */
(() => {
  const MOST_ZOOM = 64;

  V.Picture = class {
    constructor(onpick) {
      this.canvas = V.el("canvas.picture", { tabindex: "0", "aria-label": "The picture; a click asks a pixel" });
      this.readout = V.el("span.readout", {}, " ");
      this.image = null;
      this.pixels = null;
      this.mark = null;
      this.scale = 0;
      this.left = 0;
      this.top = 0;
      this.onpick = onpick;
      this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      this.canvas.addEventListener("pointerdown", (event) => this.press(event));
      this.canvas.addEventListener("pointermove", (event) => this.move(event));
      this.canvas.addEventListener("pointerup", (event) => this.release(event));
      this.canvas.addEventListener("pointerleave", () => { this.readout.textContent = " "; });
      new ResizeObserver(() => this.draw()).observe(this.canvas);
    }

    /** Shows an image; the zoom stays where the size is the same. */
    show(image) {
      const same = this.image && this.image.width === image.width && this.image.height === image.height;
      this.image = image;
      this.pixels = null;
      if (!same) this.scale = 0;
      this.draw();
    }

    fit() { this.scale = 0; this.draw(); }

    zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
      const before = this.scale || this.fitted();
      const after = Math.min(Math.max(before * factor, 0.1), MOST_ZOOM);
      this.left = x - ((x - this.left) * after) / before;
      this.top = y - ((y - this.top) * after) / before;
      this.scale = after;
      this.draw();
    }

    fitted() {
      const wide = this.canvas.clientWidth / this.image.width;
      return Math.min(wide, this.canvas.clientHeight / this.image.height) || 1;
    }

    draw() {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      const ratio = window.devicePixelRatio || 1;
      this.canvas.width = width * ratio;
      this.canvas.height = height * ratio;
      if (!this.image || !width || !height) return;
      const fitting = !this.scale;
      const scale = this.scale || this.fitted();
      if (fitting) {
        this.left = (width - this.image.width * scale) / 2;
        this.top = (height - this.image.height * scale) / 2;
      }
      const context = this.canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.imageSmoothingEnabled = scale < 1;
      context.drawImage(this.image, this.left, this.top, this.image.width * scale, this.image.height * scale);
      if (scale >= 16) this.grid(context, scale, width, height);
      if (this.mark) this.cross(context, scale, width, height);
      this.shownScale = scale;
    }

    grid(context, scale, width, height) {
      context.strokeStyle = "rgba(128,128,128,.35)";
      context.lineWidth = 1;
      context.beginPath();
      for (let x = Math.max(0, Math.floor(-this.left / scale)); x <= this.image.width && this.left + x * scale <= width; x += 1) {
        context.moveTo(Math.round(this.left + x * scale) + 0.5, this.top);
        context.lineTo(Math.round(this.left + x * scale) + 0.5, this.top + this.image.height * scale);
      }
      for (let y = Math.max(0, Math.floor(-this.top / scale)); y <= this.image.height && this.top + y * scale <= height; y += 1) {
        context.moveTo(this.left, Math.round(this.top + y * scale) + 0.5);
        context.lineTo(this.left + this.image.width * scale, Math.round(this.top + y * scale) + 0.5);
      }
      context.stroke();
    }

    cross(context, scale, width, height) {
      const [x, y] = this.mark;
      const size = Math.max(scale, 1);
      const left = this.left + x * scale;
      const top = this.top + y * scale;
      for (const [colour, wide] of [["rgba(0,0,0,.75)", 3], ["#ffb000", 1.25]]) {
        context.strokeStyle = colour;
        context.lineWidth = wide;
        context.strokeRect(left - 1.5, top - 1.5, size + 3, size + 3);
        context.beginPath();
        const [middle, centre] = [left + size / 2, top + size / 2];
        for (const side of [-1, 1]) {
          context.moveTo(middle + side * (size / 2 + 4), centre);
          context.lineTo(middle + side * (size / 2 + 16), centre);
          context.moveTo(middle, centre + side * (size / 2 + 4));
          context.lineTo(middle, centre + side * (size / 2 + 16));
        }
        context.stroke();
      }
    }

    at(event) {
      const box = this.canvas.getBoundingClientRect();
      const x = Math.floor((event.clientX - box.left - this.left) / this.shownScale);
      const y = Math.floor((event.clientY - box.top - this.top) / this.shownScale);
      return this.image && x >= 0 && y >= 0 && x < this.image.width && y < this.image.height ? [x, y] : null;
    }

    colour([x, y]) {
      if (!this.pixels) {
        const copy = V.el("canvas", { width: this.image.width, height: this.image.height });
        const context = copy.getContext("2d", { willReadFrequently: true });
        context.drawImage(this.image, 0, 0);
        this.pixels = context.getImageData(0, 0, this.image.width, this.image.height);
      }
      const place = 4 * (y * this.pixels.width + x);
      return [...this.pixels.data.slice(place, place + 3)];
    }

    wheel(event) {
      if (!this.image) return;
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    }

    press(event) {
      this.canvas.setPointerCapture(event.pointerId);
      this.pressed = { x: event.clientX, y: event.clientY, left: this.left, top: this.top, moved: false };
    }

    move(event) {
      if (!this.image) return;
      const pressed = this.pressed;
      if (pressed) {
        const [x, y] = [event.clientX - pressed.x, event.clientY - pressed.y];
        if (pressed.moved || Math.abs(x) + Math.abs(y) > 4) {
          pressed.moved = true;
          this.scale = this.scale || this.fitted();
          this.left = pressed.left + x;
          this.top = pressed.top + y;
          this.draw();
        }
        return;
      }
      const place = this.at(event);
      this.readout.replaceChildren(place ? `${place[0]}, ${place[1]}  ` : " ", place ? V.swatch([...this.colour(place), 255]) : "");
    }

    release(event) {
      const pressed = this.pressed;
      this.pressed = null;
      if (!pressed || pressed.moved) return;
      const place = this.at(event);
      if (place) this.onpick(...place);
    }
  };

  /** An image in which only what differs between two is bright. */
  V.difference = (before, after) => {
    const canvas = V.el("canvas", { width: after.width, height: after.height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const read = (image) => {
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, after.width, after.height);
    };
    const old = new Uint32Array(read(before).data.buffer);
    const made = read(after);
    const now = new Uint32Array(made.data.buffer);
    let changed = 0;
    for (let at = 0; at < now.length; at += 1) {
      if (now[at] !== old[at]) changed += 1;
      else {
        const grey = ((now[at] & 255) + ((now[at] >>> 8) & 255) + ((now[at] >>> 16) & 255)) / 3;
        const dark = Math.round(40 + grey / 5);
        now[at] = ((255 << 24) | (dark << 16) | (dark << 8) | dark) >>> 0;
      }
    }
    context.putImageData(made, 0, 0);
    canvas.changed = changed;
    return canvas;
  };
})();
