"use strict";
/* Where answers come from: a server, or this page itself. Questions and answers are the same. */
(() => {
  const holder = document.getElementById("answers");
  const inside = holder ? JSON.parse(holder.textContent) : null;
  V.inside = inside;
  if (inside && !location.hash) history.replaceState(null, "", inside.link);

  /** The draw that a page from disk has a picture of: a draw itself, or the last one before it. */
  V.kept = (draw) => (inside ? inside.draws.reduce((best, one) => (one <= draw ? one : best), 0) : draw);
  const kept = new Map();
  const MOST = 240;

  V.keyOf = (name, values) => {
    const parts = Object.entries(values)
      .filter(([key, value]) => !(key === "edition" && !value))
      .map(([key, value]) => `${key}=${value}`)
      .sort();
    return parts.length ? `${name}?${parts.join("&")}` : name;
  };

  const fromServer = async (name, values) => {
    let answer;
    try {
      answer = await fetch(`ask/${name}?${new URLSearchParams(values)}`);
    } catch {
      throw new Error("the server does not answer: vc4lab view has ended, or is stopped");
    }
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({ error: `status ${answer.status}` }))).error);
    const type = answer.headers.get("Content-Type") || "";
    return type.startsWith("image/") ? URL.createObjectURL(await answer.blob()) : answer.json();
  };

  const fromInside = async (key) => {
    let found = inside.answers[key];
    if (found && found.same) found = inside.answers[found.same];
    if (found === undefined) throw new Error(`This page has only a part of the capture, and not this: ${key}`);
    return typeof found === "string" ? `data:image/png;base64,${found}` : found;
  };

  /** The answer to a question: an object, or the address of a picture. */
  V.ask = (name, values = {}) => {
    const key = V.keyOf(name, values);
    const known = kept.get(key);
    if (known) {
      kept.delete(key);
      kept.set(key, known);
      return known;
    }
    const asked = inside ? fromInside(key) : fromServer(name, values);
    kept.set(key, asked);
    asked.catch(() => kept.delete(key));
    while (kept.size > MOST) {
      const [oldest, answer] = kept.entries().next().value;
      kept.delete(oldest);
      answer.then((one) => typeof one === "string" && one.startsWith("blob:") && setTimeout(() => URL.revokeObjectURL(one), 5000), () => {});
    }
    return asked;
  };

  V.has = (name, values) => !inside || V.keyOf(name, values) in inside.answers;

  /** Changes something: the number of the new edition. */
  V.edit = async (wanted) => {
    if (inside) throw new Error("a page from disk cannot draw: open the capture with vc4lab view");
    const answer = await fetch("edit", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted) });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found.edition;
  };

  /** A picture's pixels. */
  V.pixels = async (address) => {
    const image = new Image();
    image.src = address;
    await image.decode();
    return image;
  };
})();
