"use strict";
/* The place that is looked at. It stands in the address, as #f3/j2/d14/p200,150/shader. */
(() => {
  const LINK = /^#?f(\d+)(?:\/j(\d+))?(?:\/d(\d+))?(?:\/p(\d+)(?:,(\d+))?)?(?:\/([a-z]+))?$/;
  const watchers = [];
  V.place = { frame: null, job: 0, draw: null, x: null, y: null, primitive: null, view: "pixel", edition: 0 };

  V.parse = (text) => {
    const found = LINK.exec(text);
    if (!found) return null;
    const [, frame, job, draw, first, second, view] = found;
    const place = { frame: Number(frame), job: Number(job || 0), draw: draw === undefined ? null : Number(draw), x: null, y: null, primitive: null };
    if (second !== undefined) [place.x, place.y] = [Number(first), Number(second)];
    else if (first !== undefined) place.primitive = Number(first);
    if (view in V.views) place.view = view;
    return place;
  };

  V.linkOf = (place) => {
    const parts = [`#f${place.frame}`];
    if (place.job) parts.push(`j${place.job}`);
    if (place.draw !== null) parts.push(`d${place.draw}`);
    if (place.x !== null) parts.push(`p${place.x},${place.y}`);
    else if (place.primitive !== null) parts.push(`p${place.primitive}`);
    if (place.view !== "pixel") parts.push(place.view);
    return parts.join("/");
  };

  V.watch = (names, call) => watchers.push({ names, call });

  /** Goes to another place; what is not named stays. */
  V.go = (changes) => {
    const before = V.place;
    const now = { ...before, ...changes };
    const changed = Object.keys(now).filter((name) => now[name] !== before[name]);
    if (!changed.length) return;
    V.place = now;
    history.replaceState(null, "", V.linkOf(now));
    for (const one of watchers) if (one.names.some((name) => changed.includes(name))) one.call(now, before);
  };

  V.startWatching = () => {
    window.addEventListener("hashchange", () => {
      const found = V.parse(location.hash);
      if (found) V.go({ ...found, frame: V.hasFrame(found.frame) ? found.frame : V.place.frame });
    });
  };
})();
