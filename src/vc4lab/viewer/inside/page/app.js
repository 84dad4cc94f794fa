"use strict";
/* The page as a whole: the head, the picture with its slider, the tabs, the keyboard. */
(() => {
  const MODES = [["picture", "picture"], ["changed", "changed", "What this draw changed; the rest is dark"]];
  const WORDS = { overdraw: "how often a pixel's program ran", levels: "mip levels", misses: "texture cache misses", clocks: "clocks of each pixel" };
  let overlay = "picture";
  let serial = 0;
  let waiting = false;
  let wanted = null;
  const parts = {};

  V.editions = 1;
  V.hasFrame = (number) => V.capture.frames.some((one) => one.number === number);

  /** The job whose picture is looked at. */
  V.jobNow = () => {
    const draw = V.frame.draws[(V.place.draw || 0) - 1];
    return draw ? draw.job : V.place.job || V.frame.job || (V.frame.jobs[0] || { job: 0 }).job;
  };
  V.goJob = (job) => {
    const { draws } = V.frame.jobs[job - 1];
    V.go({ job, draw: draws.length ? draws[draws.length - 1] : 0, x: null, y: null });
  };

  V.say = (text) => {
    parts.say.textContent = text;
    parts.say.hidden = !text;
    clearTimeout(V.say.timer);
    if (text) V.say.timer = setTimeout(() => V.say(""), 8000);
  };

  // -- the picture --------------------------------------------------------------------------------

  const question = (draw, name) => {
    const { frame, edition } = V.place;
    if (name === "target") return ["target", { frame, edition, job: V.jobNow() }];
    return name === "picture" ? ["picture", { frame, edition, draw }] : ["overlay", { frame, edition, draw, name }];
  };

  const imageOf = async (asked) => {
    if (!V.jobNow()) throw new Error("this frame draws no picture");
    const draw = V.kept(asked);
    if (overlay === "changed") {
      const [before, after] = await Promise.all([Math.max(draw - 1, 0), draw].map((one) => V.ask(...question(one, "picture")).then(V.pixels)));
      return before.width === after.width && before.height === after.height ? V.difference(before, after) : after;
    }
    const jobs = V.frame.jobs[V.jobNow() - 1];
    const whole = !jobs || !jobs.draws.length;
    return V.pixels(await V.ask(...question(draw, whole && overlay === "picture" ? "target" : overlay)));
  };

  /** Shows the picture at the draw that is looked at; while one is on its way, only the last that was asked for. */
  const showPicture = async () => {
    wanted = true;
    if (waiting) return;
    waiting = true;
    while (wanted) {
      wanted = null;
      const { draw, frame, edition } = V.place;
      try {
        const image = await imageOf(draw);
        if (V.place.frame === frame && V.place.edition === edition) {
          parts.picture.show(image);
          parts.trouble.textContent = V.kept(draw) !== draw ? `the picture after draw ${V.kept(draw)}: this page has some only` : overlay === "changed" ? `${V.many(image.changed ?? 0, "pixel")} changed` : "";
        }
      } catch (error) {
        parts.trouble.textContent = error.message;
      }
    }
    waiting = false;
    document.body.dataset.ready = `${V.place.frame}/${V.place.draw}/${V.place.edition}/${overlay}`;
  };

  const showSlider = () => {
    const { draw } = V.place;
    const total = V.frame.draws.length;
    parts.slider.max = total;
    parts.slider.value = draw;
    const one = V.frame.draws[draw - 1];
    parts.label.textContent = one ? `draw ${draw} of ${total}` : `before any of ${V.many(total, "draw")}`;
    parts.about.textContent = one ? `${one.mode}, ${V.many(one.vertices, "vertex", "vertices")}${V.frame.jobs.length > 1 ? `, job ${one.job}` : ""}` : "";
  };

  const showMark = () => {
    parts.picture.mark = V.place.x === null ? null : [V.place.x, V.place.y];
    parts.picture.draw();
  };

  const step = (by) => {
    if (!V.inside) return V.go({ draw: Math.min(Math.max((V.place.draw || 0) + by, 0), V.frame.draws.length), primitive: null });
    const { draws } = V.inside;
    const at = draws.indexOf(V.kept(V.place.draw)) + Math.sign(by);
    return V.go({ draw: draws[Math.min(Math.max(at, 0), draws.length - 1)], primitive: null });
  };

  const pick = (x, y) => {
    if (V.inside) {
      const job = V.jobNow();
      let best = null;
      for (const [one, column, row] of V.inside.pixels) {
        const distance = (column - x) ** 2 + (row - y) ** 2;
        if (one === job && (!best || distance < best[0])) best = [distance, column, row];
      }
      if (best) [, x, y] = best;
    }
    V.go({ x, y, primitive: null, job: V.jobNow(), ...(["pixel", "targets", "counters", "timing", "messages", "state", "mesh", "textures", "lists"].includes(V.place.view) ? { view: "pixel" } : {}) });
    if (V.run && V.place.view === "shader") { V.run = null; V.go({ view: "pixel" }); }
  };

  const stage = (box) => {
    parts.picture = new V.Picture(pick);
    parts.trouble = V.el("span.trouble", {});
    parts.slider = V.el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Draw", id: "slider" });
    parts.slider.addEventListener("input", () => V.go({ draw: V.kept(Number(parts.slider.value)), primitive: null }));
    parts.label = V.el("b", {});
    parts.about = V.el("span.faint", {});
    parts.modes = V.el("span", {});
    V.showModes = () => {
      const choose = (name) => { overlay = name; V.showModes(); showPicture(); };
      const names = V.capture ? V.capture.overlays : [];
      parts.modes.replaceChildren(V.choice(MODES, overlay, choose, "Picture"), " ",
        V.el("select", { "aria-label": "Overlay", class: names.includes(overlay) ? "on" : "", onchange: (event) => choose(event.target.value || "picture") },
          V.el("option", { value: "" }, "overlay…"), names.map((name) => V.el("option", { value: name, selected: name === overlay, title: WORDS[name] }, WORDS[name] ? `${name}: ${WORDS[name]}` : name))));
    };
    V.showModes();
    box.append(
      V.el("div.bar", {}, parts.modes),
      parts.picture.canvas,
      V.el("div.bar.small", {}, parts.picture.readout, V.el("span.grow", {}), parts.trouble,
        V.button("−", () => parts.picture.zoom(0.5), { title: "Smaller (-)" }), V.button("fit", () => parts.picture.fit(), { title: "All of it (f)" }), V.button("+", () => parts.picture.zoom(2), { title: "Larger (+)" })),
      V.el("div.bar.slide", {}, V.button("◀", () => step(-1), { title: "Draw before (←)" }), parts.slider, V.button("▶", () => step(1), { title: "Next draw (→)" })),
      V.el("div.bar.small", {}, parts.label, parts.about));
  };

  // -- tabs ---------------------------------------------------------------------------------------

  const render = async () => {
    const number = ++serial;
    const view = V.views[V.place.view];
    for (const one of parts.tabs.children) one.setAttribute("aria-selected", String(one.dataset.name === V.place.view));
    const slow = setTimeout(() => number === serial && parts.body.replaceChildren(V.el("p.note.wait", {}, "drawing it again…")), 250);
    let made;
    try {
      made = await view.render(V.place);
    } catch (error) {
      made = V.note(error.message, "bad");
    }
    clearTimeout(slow);
    if (number !== serial) return;
    const scrolled = parts.body.dataset.name === V.place.view ? parts.body.scrollTop : 0;
    parts.body.replaceChildren(...[made].flat(Infinity).filter((one) => one instanceof Node));
    parts.body.dataset.name = V.place.view;
    parts.body.scrollTop = scrolled;
    parts.body.dataset.shown = String(number);
  };
  V.refresh = render;

  const panel = (box) => {
    parts.tabs = V.el("nav", { role: "tablist" }, Object.entries(V.views).map(([name, view]) => V.button(view.title, () => V.go({ view: name }), { role: "tab", "data-name": name, title: `${view.title} (${view.key})` })));
    parts.body = V.el("div.body", { id: "body", tabindex: "-1" });
    parts.say = V.el("p.note.bad", { hidden: true });
    box.append(parts.tabs, parts.say, parts.body);
  };

  // -- head ---------------------------------------------------------------------------------------

  const theme = () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    V.remember("theme", document.documentElement.dataset.theme);
    parts.picture.draw();
  };

  const head = () => {
    const { frames } = V.capture;
    const place = frames.findIndex((one) => one.number === V.place.frame);
    const to = (at) => frames[at] && V.go({ frame: frames[at].number });
    const single = V.inside || frames.length === 1;
    const select = V.el("select", { "aria-label": "Frame", onchange: (event) => V.go({ frame: Number(event.target.value) }) }, frames.map((one) => V.el("option", { value: one.number, selected: one.number === V.place.frame }, `frame ${one.number}${one.jobs ? "" : " (no jobs)"}`)));
    const edits = V.editions > 1 && V.el("span.edition", { class: V.place.edition ? "on" : "" },
      V.el("select", { "aria-label": "Edition", onchange: (event) => V.go({ edition: Number(event.target.value) }) }, Array.from({ length: V.editions }, (_, number) => V.el("option", { value: number, selected: number === V.place.edition }, number ? `edit ${number}` : "as captured"))));
    document.getElementById("top").replaceChildren(...[
      V.el("b.brand", {}, "vc4lab"), V.el("span.name", { title: V.capture.program }, V.capture.name), V.el("span.faint", {}, [V.capture.front, V.capture.program].filter(Boolean).join(" · ").slice(0, 60)),
      V.el("span.grow", {}),
      edits,
      single ? V.el("span", {}, `frame ${V.place.frame}`) : V.el("span.frames", {}, V.button("◀", () => to(place - 1), { disabled: place <= 0, title: "Frame before (,)" }), select, V.button("▶", () => to(place + 1), { disabled: place >= frames.length - 1, title: "Next frame (.)" })),
      V.button("◐", theme, { title: "Light or dark (t)" }),
      V.button("?", help, { title: "Keys (?)" })].filter(Boolean));
    document.title = `${V.capture.name} · frame ${V.place.frame} · vc4lab view`;
  };

  const KEYS = [["← →", "draw before, next draw"], ["⇧← ⇧→", "ten draws"], ["Home End", "before any draw, all draws"], [", .", "frame before, next frame"], ["/", "search events; Enter goes on"], ["1 … 9 0", "views"], ["[ ]", "a step of the program back, forward"], ["+ − f", "zoom, fit"], ["e", "as captured, or the last edit"], ["t", "light or dark"]];
  const help = () => {
    const box = V.el("dialog", {}, V.el("h2", {}, "Keys"), V.table(null, KEYS.map(([key, text]) => [V.el("kbd", {}, key), text])), V.inside && V.inside.notes.map((one) => V.el("p.faint", {}, one)), V.el("form", { method: "dialog" }, V.el("button", {}, "close")));
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
  };

  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const field = event.target.closest("input:not([type=range]):not([type=checkbox]), select, textarea");
    if (field) return;
    const { frames } = V.capture;
    const place = frames.findIndex((one) => one.number === V.place.frame);
    const frame = (at) => frames[at] && V.go({ frame: frames[at].number });
    const view = Object.entries(V.views).find(([, one]) => one.key === event.key);
    const actions = {
      ArrowLeft: () => step(event.shiftKey ? -10 : -1), ArrowRight: () => step(event.shiftKey ? 10 : 1),
      Home: () => V.go({ draw: 0 }), End: () => V.go({ draw: V.frame.draws.length }),
      ",": () => frame(place - 1), ".": () => frame(place + 1),
      "/": () => parts.events.search.focus(), "[": () => V.run && V.stepTo(V.run.at - 1), "]": () => V.run && V.stepTo(V.run.at + 1),
      "+": () => parts.picture.zoom(2), "-": () => parts.picture.zoom(0.5), f: () => parts.picture.fit(),
      e: () => V.editions > 1 && V.go({ edition: V.place.edition ? 0 : V.editions - 1 }), t: theme, "?": help,
    };
    const act = view ? () => V.go({ view: view[0] }) : actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  // -- begin --------------------------------------------------------------------------------------

  const split = (bar) => {
    const name = bar.dataset.side;
    const kept = V.remembered(name);
    if (kept) document.documentElement.style.setProperty(`--${name}`, kept);
    bar.addEventListener("pointerdown", (event) => {
      bar.setPointerCapture(event.pointerId);
      bar.onpointermove = (move) => {
        const size = name === "left" ? move.clientX : window.innerWidth - move.clientX;
        const text = `${Math.min(Math.max(size, 160), window.innerWidth - 360)}px`;
        document.documentElement.style.setProperty(`--${name}`, text);
        V.remember(name, text);
      };
    });
    bar.addEventListener("pointerup", () => { bar.onpointermove = null; });
  };

  const loadFrame = async () => {
    const { frame, edition, draw } = V.place;
    const found = await V.ask("frame", { frame, edition });
    if (V.place.frame !== frame || V.place.edition !== edition) return;
    V.frame = found;
    if (V.place.view !== "shader") V.run = null;
    const total = found.draws.length;
    const place = draw === null || draw > total ? total : draw;
    parts.events.load(found.rows);
    V.go({ draw: place });
    if (V.place.job > found.jobs.length) V.go({ job: 0 });
    head();
    showSlider();
    showMark();
    showPicture();
    render();
  };

  /** The picture as it was captured, which is there before anything has run. */
  const showFirst = async () => {
    if (V.inside) return;
    try {
      const answer = await fetch("first.png");
      if (answer.status !== 200) return;
      const image = await V.pixels(URL.createObjectURL(await answer.blob()));
      if (!parts.picture.image) parts.picture.show(image);
      document.body.dataset.first = String(Math.round(performance.now()));
    } catch { /* then the picture comes when it was drawn */ }
  };

  const problem = (error) => {
    parts.body.replaceChildren(V.note(error.message, "bad"));
    document.body.dataset.ready = "trouble";
  };

  const begin = async () => {
    const kept = V.remembered("theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
    document.querySelectorAll(".split").forEach(split);
    stage(document.getElementById("stage"));
    panel(document.getElementById("panel"));
    parts.events = new V.Events(document.getElementById("events"));
    document.addEventListener("keydown", keys);
    const asked = V.parse(location.hash);
    showFirst();
    try {
      V.capture = await V.ask("capture");
      V.editions = V.capture.editions;
      if (!V.capture.frames.length) throw new Error("The capture has no frames.");
      V.place = { ...V.place, ...(asked || {}), frame: asked && V.hasFrame(asked.frame) ? asked.frame : V.capture.chosen };
      V.frame = { draws: [], jobs: [], messages: [], job: 0 };
      head();
      V.showModes();
      V.watch(["frame"], (now, before) => before.frame !== null && V.go({ draw: null, x: null, y: null, job: 0, primitive: null }));
      V.watch(["frame", "edition"], () => { head(); loadFrame().catch(problem); });
      V.watch(["draw", "job"], () => V.place.draw !== null && (showSlider(), showPicture()));
      V.watch(["x", "y"], showMark);
      for (const [name, view] of Object.entries(V.views)) V.watch(["view", ...view.depends.filter((one) => one !== "frame" && one !== "edition")], () => V.place.view === name && V.place.draw !== null && render());
      V.startWatching();
      await loadFrame();
    } catch (error) {
      problem(error);
    }
  };
  begin();
})();
