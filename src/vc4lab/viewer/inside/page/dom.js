"use strict";
/* Elements, numbers and colours as text. All of the page's scripts share V. */
const V = { views: {}, order: [] };

/** An element: V.el("div.name", {onclick, title …}, child, "text" …). */
V.el = (what, props = {}, ...children) => {
  const [tag, ...names] = what.split(".");
  const made = document.createElement(tag || "div");
  if (names.length) made.className = names.join(" ");
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, one] of Object.entries(value)) made.style.setProperty(name, one);
    else if (key === "class") made.className += ` ${value}`;
    else made.setAttribute(key, value === true ? "" : value);
  }
  for (const one of children.flat(Infinity)) if (one !== null && one !== undefined && one !== false) made.append(one);
  return made;
};

V.svg = (tag, props = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(props)) made.setAttribute(key, value);
  for (const one of children.flat(Infinity)) if (one !== null && one !== undefined) made.append(one);
  return made;
};

V.hex = (word, digits = 8) => (word >>> 0).toString(16).padStart(digits, "0");
V.address = (word) => `0x${V.hex(word)}`;
V.count = (number) => number.toLocaleString("en-US");
V.many = (number, one, more = `${one}s`) => `${V.count(number)} ${number === 1 ? one : more}`;

const floats = new Float32Array(1);
const words = new Uint32Array(floats.buffer);
/** A word as a single, in few digits. */
V.single = (word) => {
  words[0] = word;
  return V.short(floats[0]);
};
V.short = (value) => {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(5)));
};

/** The bytes of base64 text as an array of a kind. */
V.numbers = (text, kind) => {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
  return new kind(bytes.buffer);
};

/** A colour word of the tile buffer as red, green, blue, alpha. */
V.rgba = (word, blueFirst) => {
  const value = parseInt(word, 16) >>> 0;
  const parts = [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, value >>> 24];
  if (blueFirst) [parts[0], parts[2]] = [parts[2], parts[0]];
  return parts;
};

V.swatch = (parts, title) => {
  const [r, g, b, a] = parts;
  const text = `#${[r, g, b, a].map((one) => one.toString(16).padStart(2, "0")).join("")}`;
  return V.el("span.swatch", { title: title || text }, V.el("i", { style: { background: `rgb(${r} ${g} ${b})` } }), V.el("code", {}, text));
};

V.button = (text, onclick, props = {}) => V.el("button", { type: "button", onclick, ...props }, text);
V.link = (text, onclick, title) => V.el("button.link", { type: "button", onclick, title }, text);

/** A row of buttons of which one is chosen. */
V.choice = (names, chosen, onchoose, label) =>
  V.el("div.choice", { role: "group", "aria-label": label },
    names.map(([name, text, title]) => V.button(text, () => onchoose(name), { "aria-pressed": String(name === chosen), title, "data-name": name })));

V.table = (heads, rows, props = {}) =>
  V.el("table", props,
    heads && V.el("thead", {}, V.el("tr", {}, heads.map((one) => V.el("th", {}, one)))),
    V.el("tbody", {}, rows.map((row) => (row instanceof Node ? row : V.el("tr", {}, row.map((one) => (one instanceof Node && one.tagName === "TD" ? one : V.el("td", {}, one))))))));

V.note = (text, kind = "") => V.el("p.note", { class: kind }, text);

/** Remembers a small thing where that is possible: pages from disk may have no storage. */
V.remember = (name, value) => {
  try { localStorage.setItem(`vc4lab-${name}`, value); } catch { /* then it is not */ }
};
V.remembered = (name) => {
  try { return localStorage.getItem(`vc4lab-${name}`); } catch { return null; }
};
