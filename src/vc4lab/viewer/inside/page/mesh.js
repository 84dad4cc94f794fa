"use strict";
/* The vertices of a draw as a wireframe that turns: as they are fetched, and after the coordinate program. */
(() => {
  const MOST_EDGES = 60000;
  const view = { turn: 0.6, tilt: 0.35, spin: true, what: "after", array: 0, zoom: 1 };
  let running = null;

  /** Pairs of places among the vertices, each edge once. */
  const edgesOf = (mesh) => {
    const place = new Map();
    V.numbers(mesh.vertices, Uint32Array).forEach((vertex, at) => place.set(vertex, at));
    const order = Array.from(V.numbers(mesh.indices, Uint32Array), (vertex) => place.get(vertex));
    const seen = new Set();
    const found = [];
    const add = (a, b) => {
      if (a === undefined || b === undefined || found.length >= 2 * MOST_EDGES) return;
      const key = a < b ? a * 1048576 + b : b * 1048576 + a;
      if (!seen.has(key)) { seen.add(key); found.push(a, b); }
    };
    const last = order.length;
    if (mesh.mode === "triangles") for (let at = 0; at + 2 < last; at += 3) { add(order[at], order[at + 1]); add(order[at + 1], order[at + 2]); add(order[at + 2], order[at]); }
    else if (mesh.mode === "triangle strip") for (let at = 0; at + 1 < last; at += 1) { add(order[at], order[at + 1]); if (at + 2 < last) add(order[at], order[at + 2]); }
    else if (mesh.mode === "triangle fan") for (let at = 1; at < last; at += 1) { add(order[0], order[at]); if (at + 1 < last) add(order[at], order[at + 1]); }
    else if (mesh.mode === "lines") for (let at = 0; at + 1 < last; at += 2) add(order[at], order[at + 1]);
    else if (mesh.mode !== "points") for (let at = 0; at + 1 < last; at += 1) add(order[at], order[at + 1]);
    if (mesh.mode === "line loop" && last > 1) add(order[last - 1], order[0]);
    return Uint32Array.from(found);
  };

  /** Points in three dimensions, in a cube around 0. */
  const pointsOf = (mesh) => {
    if (view.what === "before") {
      const array = mesh.arrays.find((one) => one.array === view.array) || mesh.arrays[0];
      const values = V.numbers(array.values, Float32Array);
      return Array.from({ length: mesh.count }, (_, at) => [0, 1, 2].map((part) => (part < array.words ? values[at * array.words + part] : 0)));
    }
    if (mesh.clip) {
      const values = V.numbers(mesh.clip, Float32Array);
      return Array.from({ length: mesh.count }, (_, at) => {
        const w = values[4 * at + 3] || 1;
        return [values[4 * at] / w, values[4 * at + 1] / w, values[4 * at + 2] / w];
      });
    }
    const values = V.numbers(mesh.screen, Float32Array);
    return Array.from({ length: mesh.count }, (_, at) => [values[3 * at], -values[3 * at + 1], -values[3 * at + 2]]);
  };

  const centred = (points) => {
    const low = [Infinity, Infinity, Infinity];
    const high = [-Infinity, -Infinity, -Infinity];
    for (const one of points) for (let axis = 0; axis < 3; axis += 1) if (Number.isFinite(one[axis])) { low[axis] = Math.min(low[axis], one[axis]); high[axis] = Math.max(high[axis], one[axis]); }
    const size = Math.max(...high.map((one, axis) => one - low[axis])) || 1;
    const flat = view.what === "after" ? (high[2] - low[2] < size / 50 ? (size / 4) / (high[2] - low[2] || 1) : 1) : 1;
    return points.map((one) => one.map((value, axis) => ((value - (low[axis] + high[axis]) / 2) / size) * (axis === 2 ? Math.min(flat, 30) : 1)));
  };

  const paint = (canvas, points, edges) => {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (canvas.width !== width * ratio) { canvas.width = width * ratio; canvas.height = height * ratio; }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const [c, s, d, e] = [Math.cos(view.turn), Math.sin(view.turn), Math.cos(view.tilt), Math.sin(view.tilt)];
    const size = Math.min(width, height) * 0.82 * view.zoom;
    const seen = points.map(([x, y, z]) => {
      const [turnedX, turnedZ] = [x * c + z * s, z * c - x * s];
      const depth = turnedZ * d - y * e;
      const near = 1 / (1 - depth * 0.35);
      return [width / 2 + turnedX * size * near, height / 2 - (y * d + turnedZ * e) * size * near];
    });
    const style = getComputedStyle(canvas);
    context.strokeStyle = style.getPropertyValue("--mesh");
    context.lineWidth = edges.length > 20000 ? 0.5 : 1;
    context.globalAlpha = edges.length > 20000 ? 0.55 : 0.85;
    context.beginPath();
    for (let at = 0; at < edges.length; at += 2) {
      const [a, b] = [seen[edges[at]], seen[edges[at + 1]]];
      context.moveTo(a[0], a[1]);
      context.lineTo(b[0], b[1]);
    }
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = style.getPropertyValue("--accent");
    if (points.length <= 400) for (const [x, y] of seen) context.fillRect(x - 1.5, y - 1.5, 3, 3);
  };

  const scene = (mesh) => {
    const canvas = V.el("canvas.mesh", { "aria-label": "Wireframe; drag to turn it" });
    const points = centred(pointsOf(mesh));
    const edges = edgesOf(mesh);
    let before = performance.now();
    const frame = (now) => {
      if (running !== canvas || !document.contains(canvas)) return;
      if (view.spin && !document.hidden) view.turn += Math.min(now - before, 100) / 4000;
      before = now;
      paint(canvas, points, edges);
      requestAnimationFrame(frame);
    };
    running = canvas;
    requestAnimationFrame(() => requestAnimationFrame(frame));
    canvas.addEventListener("pointermove", (event) => {
      if (!event.buttons) return;
      view.spin = false;
      view.turn += event.movementX / 120;
      view.tilt += event.movementY / 120;
    });
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); view.zoom = Math.min(Math.max(view.zoom * Math.exp(-event.deltaY / 400), 0.2), 40); }, { passive: false });
    return [canvas, edges.length / 2];
  };

  const rows = (mesh) => {
    const names = V.numbers(mesh.vertices, Uint32Array);
    const screen = mesh.screen && V.numbers(mesh.screen, Float32Array);
    const clip = mesh.clip && V.numbers(mesh.clip, Float32Array);
    const arrays = mesh.arrays.map((one) => [one, V.numbers(one.values, Float32Array)]);
    const part = (values, count, at) => [...values.slice(count * at, count * at + count)].map(V.short).join(", ");
    return V.el("div.wide", {}, V.table(
      ["vertex", ...arrays.map(([one]) => `array ${one.array}`), ...(clip ? ["clip"] : []), ...(screen ? ["screen x, y, z"] : [])],
      [...names.slice(0, 100)].map((vertex, at) => [
        V.inside ? String(vertex) : V.link(String(vertex), () => V.openVertex(mesh.draw, vertex), "Step its programs"), ...arrays.map(([one, values]) => part(values, one.words, at)),
        ...(clip ? [part(clip, 4, at)] : []), ...(screen ? [part(screen, 3, at)] : [])]), { class: "numbers" }));
  };

  V.views.mesh = {
    title: "Mesh", key: "5", depends: ["frame", "edition", "draw"],
    async render(place) {
      if (!place.draw) return V.note("Before any draw there are no vertices: choose a draw.");
      const mesh = await V.ask("mesh", { frame: place.frame, edition: place.edition, draw: place.draw });
      const choices = [...mesh.arrays.map((one) => [`before${one.array}`, `array ${one.array}`, "As it is fetched"]), ...(mesh.screen ? [["after", "after", "After the coordinate program: clip coordinates over W"]] : [])];
      if (!choices.length) return V.note("This draw's vertices are no singles that could be shown.");
      if (view.what === "before" && !mesh.arrays.some((one) => one.array === view.array)) view.what = "after";
      if (view.what === "after" && !mesh.screen) view.what = "before";
      const [canvas, edges] = scene(mesh);
      const chosen = view.what === "after" ? "after" : `before${(mesh.arrays.find((one) => one.array === view.array) || mesh.arrays[0]).array}`;
      return [
        V.el("div.bar", {}, V.el("h2", {}, `Draw ${place.draw}`), V.choice(choices, chosen, (name) => {
          view.what = name === "after" ? "after" : "before";
          if (name !== "after") view.array = Number(name.slice(6));
          V.refresh();
        }, "Vertices"), V.el("label", {}, V.el("input", { type: "checkbox", checked: view.spin, onchange: (event) => { view.spin = event.target.checked; } }), " turn")),
        canvas,
        V.el("p.faint", {}, `${V.many(mesh.count, "vertex", "vertices")}, ${V.many(edges, "edge")}, ${mesh.mode}${mesh.outside ? `; ${V.count(mesh.outside)} beyond a plane of the view volume` : ""}. Drag turns, the wheel zooms.`),
        rows(mesh),
        mesh.count > 100 && V.el("p.faint", {}, `The first 100 of ${V.count(mesh.count)} vertices; all of them are in Lists.`),
      ];
    },
  };
})();
